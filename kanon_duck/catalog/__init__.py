"""What the database remembers of masked views: settings, and the views and releases made with them."""
