"""The whole table, in its order."""

from tests.abuse import kernel, patching, reaching, reading, wearing, writing

__all__ = ["ROWS"]

ROWS = {
    row.number: row
    for rows in (
        reading.ROWS,
        writing.ROWS,
        patching.ROWS,
        wearing.ROWS,
        reaching.ROWS,
        kernel.ROWS,
    )
    for row in rows
}
