"""Plan torch.compile of the root modules, in three ways."""

from tuilab.commands.tune.planning.candidate import (
    Answer,
    ApplicableTreatment,
    Situation,
    already_set,
    not_applicable,
)
from tuilab.commands.tune.planning.precision import NO_ROOT
from tuilab.text.display import plural

GRAPHS = "reduce-overhead"
DYNAMIC = "dynamic"
# The shares of computing that stay at best. A compiled module still has its matrix products. If it
# consists of small operators, their launches can vanish, and CUDA graphs remove even more of them.
_STAYS = 0.1
_STAYS_WITH_GRAPHS = 0.05
_NO_COMPILER = "torch.compile needs a C++ compiler, and none is installed: apt install g++"
_IS_COMPILED = "the script compiles its modules"


def plan_compile(situation: Situation) -> Answer:
    """Plan torch.compile alone, with CUDA graphs, and for sizes that vary."""
    has_compiled = situation.recompilations or any(
        root.is_compiled for root in situation.facts.roots
    )
    if not situation.machine.has_compiler and not has_compiled:
        return not_applicable(_NO_COMPILER)
    return [*_plan_plain(situation), *_plan_graphs(situation), *_plan_dynamic(situation)]


def _plan_plain(situation: Situation) -> Answer:
    roots = situation.facts.roots
    if not roots:
        return not_applicable(NO_ROOT)
    if all(root.is_compiled for root in roots):
        return already_set(_IS_COMPILED)
    gain = situation.gain_of_computing(_STAYS)
    return [ApplicableTreatment(gain=gain, change="model = torch.compile(model)")]


def _plan_graphs(situation: Situation) -> Answer:
    """Plan CUDA graphs. If the script compiles its modules, the treatment changes the mode."""
    if not situation.facts.roots:
        return not_applicable(NO_ROOT, GRAPHS)
    if not situation.has_gpu:
        return not_applicable("CUDA graphs need a GPU, and the script uses none", GRAPHS)
    return [
        ApplicableTreatment(
            value=GRAPHS,
            title="torch.compile with CUDA graphs",
            gain=situation.gain_of_computing(_STAYS_WITH_GRAPHS),
            change='model = torch.compile(model, mode="reduce-overhead")',
            lesson="cuda-graphs",
            memory="each graph keeps its memory for its next replay",
        )
    ]


def _plan_dynamic(situation: Situation) -> Answer:
    """Plan graphs for all sizes, if torch.compile makes graphs again. Compiling can vanish."""
    if not situation.recompilations:
        return not_applicable("torch.compile made no graph again while it was watched", DYNAMIC)
    candidate = ApplicableTreatment(
        value=DYNAMIC,
        title="torch.compile with dynamic sizes",
        gain=situation.gain_of_computing(0.0),
        change="model = torch.compile(model, dynamic=True),"
        f" as {plural(situation.recompilations, 'graph was', 'graphs were')} made again",
        lesson="compile-modes",
    )
    return [candidate]
