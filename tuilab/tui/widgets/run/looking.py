"""How the user looks at a run: one view of all its charts, which pane has the focus, and whether it fills the screen."""

from collections.abc import Callable
from dataclasses import replace

from textual.widget import Widget

from tuilab.tui.state.selection import Selection, keep, recalled
from tuilab.tui.state.session import Desk
from tuilab.tui.state.view import Spot, View
from tuilab.tui.widgets.chart import Chart
from tuilab.tui.widgets.pane import Pane, TextPane
from tuilab.tui.widgets.run.panes import Panes
from tuilab.tui.widgets.run.series import SeriesPane


class Looking:
    """Keeps the view, here and in the settings; `show` shows it. The action `look('zoom', 2)` is `zoom(2)` here."""

    def __init__(self, panes: Panes, desk: Desk, show: Callable[[], None]) -> None:
        kept = desk.settings
        self.view = View(is_smooth=kept.is_smooth, is_timed=kept.is_timed, has_others=kept.has_others)
        self._panes = panes
        self._desk = desk
        self._show = show
        self.scenario = ""
        self._told_failure: Pane | None = None

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
        """Change from values to their moving average with the values behind it, to that of more of them, and back."""
        view = self.view
        is_last = view.is_smooth and view.is_smoother
        self._look(replace(view, is_smooth=not is_last, is_smoother=view.is_smooth and not is_last))
        if not self.view.is_smooth:
            return "the values as they are"
        return f"smoothed{' more' if self.view.is_smoother else ''}, the values behind it"

    def toggle_time(self) -> str:
        """Change between steps and seconds; the cursor stays at its moment, and what changes its axis shows all of it."""
        view = self.view.with_windows({chart.key: None for chart in self._panes.charts if chart.has_steps})
        self._look(replace(view, is_timed=not view.is_timed))
        return "seconds along the axis" if self.view.is_timed else "steps along the axis, where there are any"

    def toggle_gpus(self) -> None:
        """Change between the GPUs of the run and all of the box."""
        self._look(replace(self.view, has_other_gpus=not self.view.has_other_gpus))

    def toggle_others(self) -> None:
        """Change between this run's curves alone, and those of others dim behind them."""
        self._look(replace(self.view, has_others=not self.view.has_others))

    def next_repeat(self) -> str:
        """Have the next repeat alone in front, which the charts tell; after the last, all of them."""
        repeats = self._panes.repeats
        if len(repeats) < 2:
            return "there is one repeat" if repeats else "nothing was logged so far"
        later = [repeat for repeat in repeats if repeat > self.view.repeat]
        self._look(replace(self.view, repeat=later[0] if later else 0))
        return "" if later else f"all {len(repeats)} repeats"

    def move_cursor(self, columns: int) -> None:
        """Move the one cursor by so many columns of the focused chart."""
        if (chart := self._panes.focused_chart) and (spot := chart.spot_beside(columns)):
            self._go_to(chart, spot)

    def go_to_next_bad(self) -> bool:
        """Move the cursor to the next NaN or Inf of the first chart that has one, on any page; say whether there is one."""
        found = self._next_bad()
        places = [self.view.selection.place_of(name, self._panes.names) for name in self._panes.bad_names]
        if found is None and (known := [place for place in places if place is not None]):
            self._select(replace(self.view.selection, page=known[0] // self._panes.room.most_charts))
            found = self._next_bad()
        if found is not None:
            self._go_to(*found)
        return found is not None

    def _next_bad(self) -> tuple[Chart, Spot] | None:
        spots = ((chart, chart.next_bad_spot()) for chart in self._panes.charts)
        return next(((chart, spot) for chart, spot in spots if spot), None)

    def turn_page(self, step: int) -> None:
        """Go to the first chart of the next page or of the one before; the one that had the focus may be gone there."""
        names, most, selection = self._panes.names, self._panes.room.most_charts, self.view.selection
        at = selection.page_of(names, most).start // most
        turned = replace(selection, page=(at + step) % max(-(-len(selection.matching(names)) // most), 1))
        if turned != selection:
            self._panes.screen.set_focus(None)  # of a pane that goes it would be handed on to any other
            self._select(turned)
            first = next(pane for pane in self._panes.every if isinstance(pane, SeriesPane))
            self._go_to_pane(first)

    def filter_charts(self, words: str) -> None:
        """Show the charts whose names contain all words."""
        if words != self.view.selection.words:
            self._select(Selection(words))

    def recall(self, scenario: str) -> None:
        """Show the charts of a scenario that were chosen last time."""
        self.scenario = scenario
        self.view = replace(self.view, selection=recalled(self._desk.settings.charts, scenario))

    def heed_click(self, click: Chart.Clicked) -> None:
        """Move the cursor to where the user clicked."""
        self._go_to(click.chart, click.spot)

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
        self._focus(panes[(widgets.index(screen.maximized) + step) % len(panes)])

    async def search(self) -> None:
        """Have words typed that are looked for in what was printed."""
        pane = self._panes.named("output")
        if isinstance(pane, TextPane):
            self._focus(pane)
            await pane.action_search()

    def _focus(self, pane: Pane) -> None:
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

    def go_to_failure(self) -> bool:
        """Go to what failed, out of any zoom, unless the user has been told; say whether anything has."""
        pane = self._panes.named("failure")
        if pane is not None and pane is not self._told_failure:
            self._told_failure = pane
            self._panes.screen.set_focus(None)  # or what had it would be scrolled to, last of all, when a zoom ends
            self._panes.screen.minimize()
            self._go_to_pane(pane)
        return pane is not None

    def scroll_pages(self, pages: int) -> None:
        """Scroll all panes by what can be seen at once."""
        self.scroll(pages * max(self._panes.size.height - 1, 1))

    def go_to_kept_pane(self) -> bool:
        """Go to the pane where the user was last time, zoomed as it was; say whether there is nothing to wait for."""
        kept, screen = self._desk.settings, self._panes.screen
        pane = self._panes.named(kept.pane)
        if pane is not None and screen.focused is None:
            self._go_to_pane(pane)
            if kept.is_zoomed:
                screen.maximize(pane, container=False)
        return pane is not None or not kept.pane

    def _go_to_pane(self, pane: Pane) -> None:
        """Give a pane the focus, and show it once it has its place: it may just have come, and others may have moved."""
        pane.focus(scroll_visible=False)
        self._panes.call_after_refresh(pane.scroll_visible, animate=False)

    def _select(self, selection: Selection) -> None:
        """Show other charts; a pane that fills the screen may be gone then."""
        if selection != self.view.selection:
            self._panes.screen.minimize()
            self._look(replace(self.view, selection=selection))

    def _go_to(self, chart: Chart, spot: Spot) -> None:
        """Move the cursor to a spot of a chart; the others that are looked at closely have it in view, too."""
        view = self.view.with_windows({one.key: one.window_with(spot.t) for one in self._panes.charts})
        self._look(view.with_cursor(chart.key, spot))

    def _look(self, view: View) -> None:
        self.view = view
        kept = self._desk.settings
        kept.is_smooth, kept.is_timed, kept.has_others = view.is_smooth, view.is_timed, view.has_others
        keep(self._desk.settings.charts, self.scenario, view.selection)
        self._show()
