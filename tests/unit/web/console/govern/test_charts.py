"""Charts stay within their frame and say the same as their table, whatever the figures."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from turnout.core.govern.usage import UsageFigures, UsageQuery, UsageReport, UsageRow
from turnout.core.money import Micros
from turnout.web.console.govern.views.charts import Series, columns_chart, fold_series
from turnout.web.console.govern.views.usage import requests_chart, spend_chart
from turnout.web.console.govern.views.words import age_text, milliseconds_text, share_text

FIGURES = st.lists(
    st.lists(st.floats(0, 1e12, allow_subnormal=False), min_size=3, max_size=3),
    min_size=0,
    max_size=5,
)


def series(rows: list[list[float]]) -> list[Series]:
    """Return a series for each row."""
    return [Series(f"s{n}", tuple(row)) for n, row in enumerate(rows)]


@given(FIGURES)
def test_bars_stay_within_the_frame(rows) -> None:
    """Each value above 0 has one bar, stacked on what is below it."""
    chart = columns_chart("t", ["a", "b", "c"], series(rows), str)
    assert len(chart.bars) == sum(value > 0 for row in rows for value in row)
    for bar in chart.bars:
        assert bar.y + bar.height <= chart.base + 0.11
        assert bar.x >= chart.left
        assert bar.x + bar.width <= chart.width
        assert bar.y >= -len(rows)
    assert chart.is_empty == (not chart.bars)


@given(FIGURES, st.integers(2, 4))
def test_folded_series_lose_nothing(rows, most) -> None:
    """The total of each column stays what it was."""
    before, after = series(rows), fold_series(series(rows), most=most)
    assert len(after) <= most
    for place in range(3):
        was = sum(one.values[place] for one in before)
        now = sum(one.values[place] for one in after)
        assert abs(was - now) <= 1e-9 * max(1.0, was)


def daily(*rows: tuple[str, str | None, int, int]) -> UsageReport:
    """Return a report by day and model, with cost and errors of each."""
    return UsageReport(
        tuple(
            UsageRow((day, model), UsageFigures(requests=3, failed=errors, cost=Micros(cost)))
            for day, model, cost, errors in rows
        ),
        UsageFigures(),
        len(rows),
    )


def test_days_without_requests_are_columns_too() -> None:
    """From the first moment that counts to the last, so that gaps are seen."""
    since = datetime(2026, 3, 1, 12, tzinfo=UTC)
    query = UsageQuery(("day", "model"), since=since, until=datetime(2026, 3, 6, tzinfo=UTC))
    report = daily(("2026-03-02", "m", 1_500_000, 0), ("2026-03-04", None, 0, 3))
    spend = spend_chart(query, report)
    assert [column.label for column in spend.columns] == [f"Mar 0{n}" for n in range(1, 6)]
    assert [bar.title for bar in spend.bars] == ["Mar 02: m $1.50"]
    assert spend.title == "Spend by model over time"
    ended = requests_chart(query, report)
    assert [line.name for line in ended.lines] == ["Mar 02", "Mar 04"]
    assert ended.lines[1].values == ("0", "0", "3")


def test_a_long_time_is_shown_by_weeks() -> None:
    """A column holds seven days, and every request is in one of them."""
    report = daily(("2026-01-01", "m", 1_000_000, 0), ("2026-12-31", "m", 2_000_000, 0))
    chart = spend_chart(UsageQuery(("day", "model")), report)
    assert len(chart.columns) == 53
    assert [bar.title.rpartition(" ")[2] for bar in chart.bars] == ["$1.00", "$2.00"]


@given(st.integers(1, 10**9))
def test_an_axis_of_counts_has_whole_numbers_alone(most: int) -> None:
    """Each of them another one, up to what is at least the highest column."""
    chart = columns_chart("t", ["a"], [Series("s", (float(most),))], str, whole=True)
    shown = [float(tick.label) for tick in chart.ticks]
    assert shown == sorted({round(one) for one in shown})
    assert most <= shown[-1] * 1.0001


def test_nothing_makes_an_empty_chart() -> None:
    """With no bar, and no error."""
    assert spend_chart(UsageQuery(), daily()).is_empty


def test_figures_are_written_for_people() -> None:
    """In the largest unit that fits, and so that the ends are told apart."""
    assert [age_text(n) for n in (-1, 59, 61, 7_200, 200_000)] == [
        "0 s",
        "59 s",
        "1 min",
        "2 h",
        "2 d",
    ]
    assert [share_text(n) for n in (0, 0.004, 0.5, 0.996, 1)] == [
        "0 %",
        "0.4 %",
        "50 %",
        "99.6 %",
        "100 %",
    ]
    assert [milliseconds_text(n) for n in (4.6, 1_500, 61_000)] == ["5 ms", "1.50 s", "61.0 s"]
