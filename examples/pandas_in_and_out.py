"""A DataFrame is masked, changes, is masked again, and comes back as a DataFrame that may be given away.

Run it with: python examples/pandas_in_and_out.py
"""

import numpy as np
import pandas as pd

import kanon_duck


def employees(rows: int, seed: int) -> pd.DataFrame:
    """Made-up employees."""
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "employee": np.arange(rows) + 1000 * seed,
            "born": pd.Timestamp("1960-01-01") + pd.to_timedelta(random.integers(0, 15_000, rows), unit="D"),
            "city": random.choice(["Basel", "Bern", "Chur", "Genf"], rows),
            "salary": 1000 * (random.lognormal(11.3, 0.4, rows) / 1000).astype(int),
        }
    )


def main() -> None:
    """Mask, refresh, and use the result."""
    with kanon_duck.connect() as connection:
        # In: a masked view needs a table, which outlives the DataFrame.
        connection.from_df(employees(600, seed=1)).create("staff")
        connection.execute(
            """
            CALL kanon.create_masked_view('staff_masked', source => 'staff', key => 'employee',
                quasi_identifiers => {'born': 'numeric', 'city': 'flat'},
                sensitive => ['salary'], k => 5, l => 3)
            """
        ).fetchall()

        # The table changes: new people come.
        connection.from_df(employees(200, seed=2)).insert_into("staff")
        release = connection.execute("CALL kanon.refresh('staff_masked')").df()
        print(release[["release", "rows", "waiting", "k_achieved", "l_achieved"]].to_string(index=False))

        # Out: an ordinary DataFrame. The bounds are dates, for queries; `born` is text, for people.
        masked = connection.execute("FROM staff_masked").df()
        print(masked.dtypes.to_string())
        smallest = masked.groupby(["born", "city"], dropna=False).size().min()
        print(f"smallest class: {smallest} rows")
        middle = masked["born_min"] + (masked["born_max"] - masked["born_min"]) / 2
        print(masked.groupby(middle.dt.year // 10 * 10)["salary"].median().rename_axis("decade").to_string())


if __name__ == "__main__":
    main()
