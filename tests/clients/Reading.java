// Reads a published table in PostgreSQL through JDBC.
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.security.MessageDigest;
import java.sql.*;
import java.util.*;

public class Reading {
    public static void main(String[] arguments) throws Exception {
        try (Connection connection = DriverManager.getConnection(arguments[0], arguments[1], arguments[2])) {
            DatabaseMetaData about = connection.getMetaData();
            System.out.println(about.getDriverName() + " " + about.getDriverVersion());
            try (ResultSet column = about.getColumns(null, null, "patients_masked", "age_min")) {
                column.next();
                System.out.println(column.getString("TYPE_NAME") + " - " + column.getString("REMARKS"));
            }
            int number = 0;
            for (String query : Files.readString(Path.of("queries.sql")).split(";\n")) {
                if (query.isBlank()) continue;
                List<String> rows = new ArrayList<>();
                try (ResultSet result = connection.createStatement().executeQuery(query)) {
                    int columns = result.getMetaData().getColumnCount();
                    while (result.next()) {
                        List<String> row = new ArrayList<>();
                        for (int place = 1; place <= columns; place++) {
                            Object value = result.getObject(place);
                            row.add(value == null ? "" : value.toString().toLowerCase());
                        }
                        rows.add(String.join("|", row));
                    }
                }
                byte[] digest = MessageDigest.getInstance("SHA-256").digest(String.join("\n", rows).getBytes(StandardCharsets.UTF_8));
                System.out.println(++number + " " + rows.size() + " " + HexFormat.of().formatHex(digest).substring(0, 12));
            }
        }
    }
}
