"""Makes a variant of a built test program: a few sources compiled anew, the rest as it was built."""
import json
import os
import pathlib
import re
import shlex
import subprocess


class Relink:
    """REQUIRES: `program`, a target of the build folder, has been built."""

    def __init__(self, root, build, program):
        self.root, self.build, self.program = root, build, program
        entries = json.loads((build / "compile_commands.json").read_text())
        self.commands = {os.path.relpath(entry["file"], root): entry["command"] for entry in entries}
        listed = subprocess.run(["ninja", "-C", str(build), "-t", "commands", program], check=True,
                                stdout=subprocess.PIPE, text=True).stdout
        self.link_command = next(line for line in reversed(listed.splitlines()) if " -o " in line)

    def compile(self, source, folder, *options):
        """The object of `source`; files of `folder`, which is laid out as the root, go before the tree's."""
        words = shlex.split(self.commands[source])
        changed = folder / source
        words[words.index("-c") + 1] = str(changed if changed.is_file() else self.root / source)
        output = folder / (source.replace("/", "_") + ".o")
        words[words.index("-o") + 1] = str(output)
        first = next(i for i, word in enumerate(words) if word.startswith("-"))
        words[first:first] = [f"-I{folder}/src"]
        self.run(words + list(options))
        return output

    def link(self, objects, folder, *options):
        """The program with `objects`, which come before the libraries that hold the same sources."""
        program = folder / self.program
        added = " ".join(shlex.quote(str(word)) for word in [program, *objects, *options])
        self.run(["sh", "-c", re.sub(r" -o \S+", lambda _: f" -o {added}", self.link_command, count=1)])
        return program

    def run(self, words):
        done = subprocess.run(words, cwd=self.build, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{shlex.join(map(str, words))}\n{done.stdout}")
