"""Completion for bash, zsh and fish: scripts that start no program, so a key costs nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from trainprobe.cli.described import Command

Commands = tuple[Command, ...]
OF_ALL = ("--help", "--version")
_BASH = """\
# Completion of trainprobe for bash: eval "$(trainprobe completion bash)"
_trainprobe() {{
    local cur="${{COMP_WORDS[COMP_CWORD]}}" prev="${{COMP_WORDS[COMP_CWORD-1]}}"
    local command="${{COMP_WORDS[1]}}" words="" word
    COMPREPLY=()
    for word in "${{COMP_WORDS[@]:0:COMP_CWORD}}"; do
        [[ $word == -- ]] && return  # what follows is the job's own command: files
    done
    if ((COMP_CWORD == 1)); then
        words="{commands}"
    else
        case "$command $prev" in
{values}
        esac
        if [[ -z $words ]]; then
            case "$command $cur" in
{words}
            esac
        fi
    fi
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
}}
complete -o bashdefault -o default -F _trainprobe trainprobe
"""
_ZSH = """\
#compdef trainprobe
# Completion of trainprobe for zsh: eval "$(trainprobe completion zsh)"
(( $+functions[compdef] )) || {{ autoload -Uz compinit && compinit }}
_trainprobe() {{
    local cur="${{words[CURRENT]}}" prev="${{words[CURRENT-1]}}" command="${{words[2]}}"
    local dashes=${{words[(i)--]}}
    if (( dashes < CURRENT )); then
        _files
        return
    fi
    if (( CURRENT == 2 )); then
        compadd -- {commands}
        return
    fi
    case "$command $prev" in
{values}
    esac
    case "$command $cur" in
{words}
        *) _files ;;
    esac
}}
compdef _trainprobe trainprobe
"""


def _bash(commands: Commands) -> str:
    return _BASH.format(
        commands=" ".join(_names(commands)),
        values=_cases(_values(commands), lambda words: f'words="{words}" ;;', "return ;;"),
        words=_cases(_words(commands), lambda words: f'words="{words}" ;;', ""),
    )


def _zsh(commands: Commands) -> str:
    def adds(words: str) -> str:
        return f"compadd -- {words}; return ;;"

    return _ZSH.format(
        commands=" ".join(_names(commands)),
        values=_cases(_values(commands), adds, "_files; return ;;"),
        words=_cases(_words(commands), adds, ""),
    )


def _fish(commands: Commands) -> str:
    lines = ["# Completion of trainprobe for fish: trainprobe completion fish | source"]
    first = "complete -c trainprobe -n __fish_use_subcommand"
    lines += [f"{first} -f -a {one.name} -d {_quoted(one.short)}" for one in commands]
    lines.append(f"{first} -l version -d 'Print the version and end.'")
    for one in commands:
        inside = f"complete -c trainprobe -n '__fish_seen_subcommand_from {one.name}'"
        for option in one.options:
            names = " ".join(
                f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
                for name in option.names
            )
            takes = f" -x -a {_quoted(' '.join(option.words))}" if option.words else " -r"
            takes = takes if option.metavar else ""
            lines.append(f"{inside} {names}{takes} -d {_quoted(option.says)}")
        lines += [
            f"{inside} -f -a {_quoted(' '.join(argument.words))}"
            for argument in one.arguments
            if argument.words
        ]
    return "\n".join(lines) + "\n"


SCRIPTS: Mapping[str, Callable[[Commands], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
"""What makes the script of each shell."""


def _names(commands: Commands) -> tuple[str, ...]:
    return (*(one.name for one in commands), *OF_ALL)


def _values(commands: Commands) -> dict[str, list[str]]:
    """What may follow an option that takes a value, by `command option`; empty for any word or
    file.
    """
    return {
        f"{one.name} {name}": list(option.words)
        for one in commands
        for option in one.options
        if option.metavar
        for name in option.names
    }


def _words(commands: Commands) -> dict[str, list[str]]:
    """By a pattern of `command word`: its options where a dash was typed, its argument's words."""
    found = {
        f"{one.name} -*": [name for option in one.options for name in option.names]
        for one in commands
    }
    for one in commands:
        words = [word for argument in one.arguments for word in argument.words]
        if words:
            found[f"{one.name} *"] = words
    return found


def _cases(rows: Mapping[str, Iterable[str]], listed: Callable[[str], str], otherwise: str) -> str:
    """The rows of a case statement, those alike in one."""
    alike: dict[str, list[str]] = {}
    for pattern, words in rows.items():
        alike.setdefault(" ".join(words), []).append(pattern)
    indent = " " * 12
    return "\n".join(
        f"{indent}{'|'.join(map(_pattern, patterns))}) {listed(words) if words else otherwise}"
        for words, patterns in alike.items()
        if words or otherwise
    )


def _pattern(pattern: str) -> str:
    """Quoted, but for a star at the end."""
    return f'"{pattern[:-1]}"*' if pattern.endswith("*") else f'"{pattern}"'


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
