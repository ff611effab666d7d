"""How the user looks at a run: one view of all its charts, which pane has the focus, and whether it fills the screen."""

from collections.abc import Callable
from dataclasses import replace

from textual.widget import Widget

from tuilab.tui.state.session import Desk
from tuilab.tui.state.view import View
from tuilab.tui.widgets.chart import Chart
from tuilab.tui.widgets.pane import Pane, TextPane
from tuilab.tui.widgets.run.panes import Panes


class Looking:
    """Keeps the view, here and in the settings; `show` shows it. The action `look('zoom', 2)` is `zoom(2)` here."""

    def __init__(self, panes: Panes, desk: Desk, show: Callable[[], None]) -> None:
        self.view = View(is_smooth=desk.settings.is_smooth, is_timed=desk.settings.is_timed)
        self._panes = panes
        self._desk = desk
        self._show = show

    def toggle_log(self) -> None:
        """Change between a logarithmic and a linear axis."""
        if chart := self._panes.focused_chart:
            self._look(replace(self.view, is_log=not chart.is_log))

    def toggle_log_x(self) -> None:
        """Change between steps and their logarithms along the axis; what changes its axis shows all of it."""
        if chart := self._panes.focused_chart:
            view = self.view.with_windows({chart.key: None for chart in self._panes.charts if chart.has_steps})
            self._look(replace(view, is_log_x=not chart.is_log_x))

    def toggle_smooth(self) -> str:
        """Change between values, and their moving average with the values behind it."""
        self._look(replace(self.view, is_smooth=not self.view.is_smooth))
        return "smoothed, the values behind it" if self.view.is_smooth else "the values as they are"

    def toggle_time(self) -> str:
        """Change between steps and seconds; the cursor stays at its moment, and what changes its axis shows all of it."""
        view = self.view.with_windows({chart.key: None for chart in self._panes.charts if chart.has_steps})
        self._look(replace(view, is_timed=not view.is_timed))
        return "seconds along the axis" if self.view.is_timed else "steps along the axis, where there are any"

    def toggle_gpus(self) -> None:
        """Change between the GPUs of the run and all of the box."""
        self._look(replace(self.view, has_other_gpus=not self.view.has_other_gpus))

    def move_cursor(self, columns: int) -> None:
        """Move the one cursor by so many columns of the focused chart."""
        if (chart := self._panes.focused_chart) and (spot := chart.spot_beside(columns)):
            self._look(self.view.with_cursor(chart.key, spot))

    def go_to_next_bad(self) -> bool:
        """Move the cursor to the next NaN or Inf of the first chart that has one; say whether there is any."""
        for chart in self._panes.charts:
            if spot := chart.next_bad_spot():
                self._look(self.view.with_cursor(chart.key, spot))
                return True
        return False

    def heed_click(self, click: Chart.Clicked) -> None:
        """Move the cursor to where the user clicked."""
        self._look(self.view.with_cursor(click.chart.key, click.spot))

    def zoom(self, factor: float) -> None:
        """Show `factor` times as much of x, in all charts."""
        self._look(self.view.with_windows({chart.key: chart.zoomed(factor) for chart in self._panes.charts}))

    def reset(self) -> None:
        """Look at the run as at first."""
        self._panes.screen.minimize()
        self._panes.screen.set_focus(None)
        self._look(View())

    def maximise(self) -> None:
        """Fill the screen with the focused pane, or give it back."""
        screen, pane = self._panes.screen, self._panes.focused
        if screen.maximized is not None:
            screen.minimize()
        elif pane is not None:
            pane.focus()
            screen.maximize(pane, container=False)
        self._desk.settings.is_zoomed = screen.maximized is not None

    def step(self, step: int) -> None:
        """Go to the next pane or the one before; zoomed, to look at each in turn."""
        screen = self._panes.screen
        if screen.maximized is None:
            screen.focus_next() if step > 0 else screen.focus_previous()
            return
        panes = list(self._panes.query(Pane))  # those that are hidden, too, which have no focus to be handed on
        widgets: list[Widget] = [*panes]
        self._go_to(panes[(widgets.index(screen.maximized) + step) % len(panes)])

    def search(self) -> None:
        """Have words typed that are looked for in the focused pane, else in what was printed."""
        pane = self._panes.named("output")
        if isinstance(pane, TextPane):
            self._go_to(pane)
            pane.action_search()

    def _go_to(self, pane: Pane) -> None:
        """Give a pane the focus, and the screen if another one has it."""
        screen = self._panes.screen
        if screen.maximized is None:
            pane.focus()
            return
        screen.minimize()
        pane.focus()
        screen.maximize(pane, container=False)

    def scroll(self, rows: int) -> None:
        """Scroll all panes."""
        self._panes.scroll_relative(y=rows, animate=False)

    def scroll_pages(self, pages: int) -> None:
        """Scroll all panes by what can be seen at once."""
        self.scroll(pages * max(self._panes.size.height - 1, 1))

    def go_to_kept_pane(self) -> bool:
        """Go to the pane where the user was last time, zoomed as it was; say whether there is nothing to wait for."""
        kept, screen = self._desk.settings, self._panes.screen
        pane = self._panes.named(kept.pane)
        if pane is not None and screen.focused is None:
            pane.focus(scroll_visible=True)
            if kept.is_zoomed:
                screen.maximize(pane, container=False)
        return pane is not None or not kept.pane

    def _look(self, view: View) -> None:
        self.view = view
        self._desk.settings.is_smooth, self._desk.settings.is_timed = view.is_smooth, view.is_timed
        self._show()
