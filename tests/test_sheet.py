from __future__ import annotations

from rectom.results.sheet import Column, Mark, Row, Sheet, Value, ranked

BEST, SECOND = Mark.BEST, Mark.SECOND


def rows(*figures: str, paper: str = "") -> list[Row]:
    found = [Row(("m", text), (Value(text, float(text)) if text else Value(),)) for text in figures]
    return [*found, *([Row(("m", "p"), (Value(paper, float(paper)),), paper=True)] if paper else [])]


def marks(*figures: str, paper: str = "") -> list[Mark | None]:
    return [row.values[0].mark for row in ranked(rows(*figures, paper=paper), [0])]


def test_the_best_is_marked_and_the_second() -> None:
    assert marks("77.75", "89.75", "90.25", "100.00") == [None, None, SECOND, BEST]
    assert marks("-1.50", "0.20", "-2.00") == [SECOND, BEST, None]


def test_ties_share_the_mark_and_the_next_figure_is_second() -> None:
    assert marks("100.00", "92.50", "100.00", "92.50", "88.75") == [BEST, SECOND, BEST, SECOND, None]
    assert marks("100.00", "100.00") == [BEST, BEST]


def test_figures_that_look_alike_are_ties() -> None:
    close = [Row(("m", str(n)), (Value("66.67", 66.6666 + n / 1000),)) for n in range(2)]
    assert [row.values[0].mark for row in ranked(close, [0])] == [BEST, BEST]


def test_a_figure_alone_is_not_the_best_and_a_dash_is_nothing() -> None:
    assert marks("77.75") == [None]
    assert marks("", "77.75") == [None, None]
    assert marks("", "77.75", "12.00") == [None, BEST, SECOND]


def test_the_papers_figures_are_not_ranked_among_ours() -> None:
    assert marks("77.75", "90.00", paper="99.00") == [SECOND, BEST, None]


def test_a_column_that_is_not_ranked_has_no_marks() -> None:
    assert all(row.values[0].mark is None for row in ranked(rows("1.00", "2.00"), []))


def test_heads_that_repeat_are_blank_and_a_model_begins_a_block() -> None:
    heads = [("a", "x", "1"), ("a", "x", "2"), ("a", "y", "2"), ("b", "y", "2"), ("b", "y", "2")]
    sheet = Sheet("t", "T", ("A", "B", "C"), (), tuple(Row(one, ()) for one in heads))
    assert [(shown, begins) for _, shown, begins in sheet.shown()] == [
        (("a", "x", "1"), False),
        (("", "", "2"), False),
        (("", "y", "2"), False),
        (("b", "y", "2"), True),
        (("", "", "2"), False),
    ]


def test_neighbours_of_one_group_are_under_one_heading() -> None:
    columns = (Column("1st", "FanToM"), Column("All", "FanToM"), Column("All", "Hi-ToM"))
    sheet = Sheet("t", "T", ("A",), columns, ())
    assert sheet.spans == [("FanToM", 2), ("Hi-ToM", 1)]
    assert sheet.has_groups
    assert not Sheet("t", "T", ("A",), (Column("x"),), ()).has_groups


def test_a_long_table_counts_the_papers_lines_too() -> None:
    ours, beside = Row(("a",), (Value("1"),)), Row(("a",), (Value("1", paper="2"),))
    assert not Sheet("t", "T", ("A",), (Column("x"),), (ours,) * 20).is_long
    assert Sheet("t", "T", ("A",), (Column("x"),), (beside,) * 20).is_long
