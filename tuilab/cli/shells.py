"""What each shell does by itself for the command of the user's behind `--`: its own completion, without asking us."""

_VERBS = ("exec", "ab", "sweep")  # that take one

_BASH = f"""
    local at begun=${{COMP_WORDS[COMP_CWORD]}}
    for ((at = 2; at < COMP_CWORD; at++)); do
        if [[ ${{COMP_WORDS[at]}} == -- && ${{COMP_WORDS[1]}} == @({"|".join(_VERBS)}) ]]; then
            if declare -F _command_offset >/dev/null; then
                _command_offset $((at + 1))
                return
            fi
            compopt -o default
            [[ $at == $((COMP_CWORD - 1)) && $begun != */* ]] && mapfile -t COMPREPLY < <(compgen -c -- "$begun")
            return 0
        fi
    done
"""
_ZSH = f"""
    local at=${{words[(ie)--]}}
    if (( at < CURRENT )) && [[ ${{words[2]}} == ({"|".join(_VERBS)}) ]]; then
        shift $at words
        (( CURRENT -= at ))
        _normal
        return
    fi
"""
_FISH = f"""
    set -l words (commandline -cpo);
    if contains -- -- $words; and contains -- "$words[2]" {" ".join(_VERBS)};
        complete -C (commandline -cp | string replace -r '^.*?\\s--\\s+' '');
        return;
    end;
"""
_OF = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
_BEGINS = ("%(complete_func)s() {\n", "function %(complete_func)s;\n")  # the function of click's that asks us


def with_own(template: str, shell: str) -> str:
    """Return click's function for a shell, with what that does by itself before it asks."""
    for begin in _BEGINS:
        template = template.replace(begin, begin + _OF[shell].lstrip("\n"), 1)
    return template
