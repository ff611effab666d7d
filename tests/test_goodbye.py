"""What stays in the scrollback when the screens close."""

from tuilab.tui.goodbye import fitted

LINE = "data/loader-workers b1fd5e goes on.  Come back: tuilab attach b1fd5e   end it: tuilab stop b1fd5e"


def test_no_command_is_cut_where_the_line_is_too_long() -> None:
    assert fitted(LINE, 120) == LINE
    assert fitted(LINE, 80).splitlines() == [
        "data/loader-workers b1fd5e goes on.",
        "  Come back: tuilab attach b1fd5e",
        "  end it: tuilab stop b1fd5e",
    ]
