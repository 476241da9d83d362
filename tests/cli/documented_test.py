# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""Every command that README, docs/ and --help show is one that the program takes: runs as dry runs,
all else on files of small runs. launch/examples_test.py does the same for the scripts of launch/.

Environment, beside that of the harness: ISOSCALE_DOCUMENTS = the folder with README.md and docs/.
"""

import glob
import itertools
import os
import re
import shlex
import tempfile

import harness

ROOT = os.environ["ISOSCALE_DOCUMENTS"]
COMMANDS = "run report compare predict check list completion".split()
#: A line that shows a command: a launcher and variables, the program, a subcommand.
SHOWN = re.compile(r"^ *((?:[\w./=:$,-]+ )*?(?:\S*/)?isoscale (?:%s)\b.*)" % "|".join(COMMANDS))
#: One in the middle of a sentence.
INLINE = re.compile(r"(?:.*<\()?(?:[\w./ -]+ )?isoscale (?:%s)\b.*" % "|".join(COMMANDS))
#: What documents leave open, and what is put there.
OPEN = {"WORKLOAD": "dp", "N": "1", "FILE.toml": "curves.toml", "DIR": "folder", "NAME": "dp",
        "FILE": "run.h5", "[SECTION,...]": "findings"}
#: Commands that cannot be tried, and why. Each must still be shown somewhere.
UNTRIED = {"mpirun ... launch/bind.sh --cores 8 -- isoscale run ...": "launch/bind_test.py has it"}
TRIED = set()  #: what documents and help both show is tried once
#: In a sentence these name the subcommand; what it reads or writes is said elsewhere.
NAMED = re.compile(r"isoscale (run|report|compare|predict|check|completion)( --detail| --html)?")
#: These need GPUs, of which a plan needs none.
ON_GPUS = re.compile(
    r"--dtype (bf16|f16|fp8|tf32)|--model (gpt|llama)|--suite (standard|acceptance)")


def commands_of(text, indents):
    """The commands of a text, with what follows a comment or a gap left out."""
    for line in re.sub(r" *\\\n *", " ", text).splitlines():
        if not line.startswith(indents):
            continue
        match = SHOWN.match(line)
        if match and not match[1].startswith("Usage"):
            yield re.split(r"  +|\s#", match[1])[0].rstrip(".;,")


def inline(text):
    """The commands in sentences; one that a shell reads from a process is the process."""
    unfenced = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    sentences = "\n".join(line for line in unfenced.splitlines() if not line.startswith("    "))
    for code in re.findall(r"`([^`]+)`", re.sub(r"(?<=.)\n(?=.)", " ", sentences)):
        command = code.partition("<(")[2].rstrip(")") or code.partition(" | ")[0]
        if INLINE.fullmatch(code) and not NAMED.fullmatch(command):
            yield command


def fenced(text):
    """A document in which what a fence holds is indented, as other examples are."""
    return re.sub(r"^```(?:sh|bash|console|)\n(.*?)^```$",
                  lambda match: re.sub(r"^", "    ", match[1], flags=re.M), text, flags=re.M | re.S)


def variants(command):
    """The commands that one with options in brackets and with alternatives stands for."""
    program, _, rest = command.partition("isoscale list ")
    if rest:
        return [f"{program}isoscale list {one.strip().replace('WORKLOAD', 'dp')}"
                for one in rest.split("|")]
    words = [OPEN.get(word, word) for word in command.split(" ")]
    words = [word.strip("[]") for word in words]
    choices = [word.split("|") if "|" in word else [word] for word in words]
    longest = max(len(choice) for choice in choices)
    return [" ".join(OPEN.get(choice[min(i, len(choice) - 1)], choice[min(i, len(choice) - 1)])
                     for choice in choices) for i in range(longest)]


class Documented(harness.Case):
    def run_file(self, name, ranks, number):
        """Copies the file of a small run to `name`; those of one number are one launch."""
        settings = ["--workload", "dp", *harness.LITTLE]
        if ranks == 2:
            settings = ["--workload", "calibrate,dp", "--scaling", "weak", *harness.FEW_CASES]
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        self.measured(name, "run", *settings, "--max-time 0.1s --quiet", ranks=ranks, launch=number)

    def make_files(self, words):
        """The run files that a command reads; of predict's, those that it can predict from."""
        reads = [word for before, word in zip(words, words[1:]) if before != "--output"]
        names = [name for word in reads for name in word.split(",") if name.endswith(".h5")]
        for number, name in enumerate(names):
            self.run_file(name.replace("*", "1"), 2 if words[0] == "predict" else None, number)

    def tried(self, shown):
        """The finished process of a command of the documents, on this machine."""
        words = shlex.split(shown)
        at = next(i for i, word in enumerate(words) if re.fullmatch(r"(\S*/)?isoscale", word))
        launcher, words = words[:at], words[at + 1:]
        if ">" in words:
            words = words[:words.index(">")]
        # They are typed in a checkout.
        for folder in ("analysis", "workloads", "launch"):
            os.symlink(os.path.join(ROOT, folder), self.path(folder))
        if "curves.toml" in words:
            page = self.read(os.path.join(ROOT, "docs/experiments.md"))
            self.write("curves.toml", re.search(r"^```toml\n(.*?)^```$", page, re.M | re.S)[1])
        self.make_files(words)
        words = list(itertools.chain.from_iterable(
            [os.path.relpath(path, self.dir) for path in glob.glob(self.path(word))]
            if "*" in word and ".h5" in word else [word] for word in words))
        if words[0] == "predict" and ".h5" in shown:
            # One node was measured here, and many where the command was shown.
            words = [word.replace("link.inter", "link.intra") for word in words]
            words += ["--nodes-of", "16384"]
        if "--best" in words:
            words += ["--set", "batch=256"]  # a search takes as long as its batches are large
        if words[0] != "run" or any(word.startswith("--resume") for word in words):
            return self.isoscale(shlex.join(words))
        words += [] if "--dry-run" in words else ["--dry-run"]
        if "--device" not in words and (ON_GPUS.search(shown) or "curves.toml" in words):
            words += ["--device", "cuda"]
        if "--ranks" in words or not launcher:
            return self.isoscale(shlex.join(words))
        # A launch leaves out what does not divide by itself; counts that are named are refused.
        count = re.search(r"(?:-np? |--ntasks[= ]|ppr:)(\d+)", " ".join(launcher))
        for ranks in (int(count[1]) if count else 1, 8, 4, 1):
            done = self.isoscale(shlex.join(words), "--ranks", str(ranks))
            if done.returncode == 0:
                break
        return done

    def assert_taken(self, shown):
        """0, or 3 where a gate says what it is there to say."""
        with tempfile.TemporaryDirectory(dir=self.scratch.name) as self.dir:
            done = self.tried(shown)
        if "no page" in done.stderr:
            return  # a build without
        allowed = (0, 3) if "--gate" in shown else (0,)
        self.assertIn(done.returncode, allowed, f"{shown}\n{done.stdout[-1000:]}{done.stderr}")

    def assert_all_taken(self, found):
        """Tries each command once, however often it is shown; returns how many there are."""
        tried = {shown: place for place, command in found if command not in UNTRIED
                 for shown in variants(command)}
        for shown in tried.keys() - TRIED:
            with self.subTest(place=tried[shown], command=shown):
                self.assert_taken(shown)
        TRIED.update(tried)
        return len(tried)

    def shown_in_documents(self):
        pages = [os.path.join(ROOT, "README.md"),
                 *sorted(glob.glob(os.path.join(ROOT, "docs/**/*.md"), recursive=True))]
        for page in pages:
            text = fenced(self.read(page))
            for command in (*commands_of(text, "    "), *inline(text)):
                yield os.path.relpath(page, ROOT), command

    def test_those_of_the_documents(self):
        found = list(self.shown_in_documents())
        tried = self.assert_all_taken(found)
        print(f"{len(found)} commands shown, {tried} tried")
        self.assertGreater(tried, 20)
        self.assertLessEqual(set(UNTRIED), {command for _, command in found})

    def test_those_of_the_help(self):
        texts = {name: self.run_ok(*name, "--help").stdout
                 for name in [(), *((command,) for command in COMMANDS)]}
        found = [(" ".join(name), command) for name, text in texts.items()
                 for command in commands_of(text, "  ") if "COMMAND" not in command]
        self.assertGreater(self.assert_all_taken(found), 4)
