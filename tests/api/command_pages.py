#!/usr/bin/env python3
"""command_pages.py PROGRAM FOLDER pages|man|bash|fish|zsh: man pages and completions have every command and
every option that the program's help shows, groff reads the pages without a warning, and the shells
complete."""
import pathlib
import re
import shutil
import subprocess
import sys

program, folder, part = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
problems = []


def need(tool):
    if not shutil.which(tool):
        print(f"skipped because {tool} is not there")
        sys.exit(77)


def run(*command):
    return subprocess.run(command, capture_output=True, text=True)


def expect(condition, what):
    if not condition:
        problems.append(what)


def check_pages(commands):
    overview = (folder / "man1/mixtape.1").read_text()
    for command in commands:
        page = folder / f"man1/mixtape-{command}.1"
        expect(page.exists() and f"mixtape\\-{command}" in overview, f"no page of {command}")
        text = page.read_text().replace("\\-", "-")
        for option in options[command]:
            expect(f".B {option}" in text, f"mixtape-{command}.1 has no {option}")


def check_man():
    need("groff")
    for page in sorted((folder / "man1").iterdir()):
        result = run("groff", "-man", "-Tutf8", "-ww", "-z", str(page))
        expect(result.returncode == 0 and not result.stderr, f"{page.name}: {result.stderr.strip()}")


def complete_bash(*words):
    line = " ".join(f"'{word}'" for word in words)
    script = (f". {folder}/bash/mixtape; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _mixtape; "
              "printf '%s\\n' \"${COMPREPLY[@]}\"")
    return run("bash", "-c", script).stdout.split()


def complete_fish(*words):
    line = " ".join(words)
    script = f"source {folder}/fish/mixtape.fish; complete -C '{line}'"
    return [row.split("\t")[0] for row in run("fish", "--no-config", "-c", script).stdout.splitlines()]


def check_shell(shell, complete, commands):
    need(shell)
    expect(set(commands) <= set(complete("mixtape", "")), f"{shell} does not complete the commands")
    for command in commands:
        found = complete("mixtape", command, "--")
        expect(set(options[command]) <= set(found), f"{shell}: mixtape {command} --: {found}")
    found = complete("mixtape", "train", "--policy", "mixed_")
    expect(sorted(found) == ["mixed_bfloat16", "mixed_float16"], f"{shell}: --policy mixed_: {found}")


def check_zsh(commands):
    need("zsh")
    result = run("zsh", "-n", str(folder / "zsh/_mixtape"))
    expect(result.returncode == 0, result.stderr)
    text = (folder / "zsh/_mixtape").read_text()
    for command in commands:
        for option in options[command]:
            expect(f"'*{option}[" in text, f"zsh: no {option} of {command}")


commands = re.findall(r"^  (\S+) +\S", run(program, "--help").stdout, re.M)
options = {command: re.findall(r"^  (?:-h, )?(--[a-z][\w-]*)", run(program, command, "--help").stdout, re.M)
           for command in commands}
expect(len(commands) > 8 and all(options.values()), f"no commands or options: {options}")
{"pages": lambda: check_pages(commands), "man": check_man, "zsh": lambda: check_zsh(commands),
 "bash": lambda: check_shell("bash", complete_bash, commands),
 "fish": lambda: check_shell("fish", complete_fish, commands)}[part]()
print("\n".join(problems) or f"{len(commands)} commands")
sys.exit(bool(problems))
