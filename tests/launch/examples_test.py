# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""The commands that the documents, and the scripts' own usage texts, show for launch/ are ones that
the scripts and Slurm would take. demo_test.py and packaging/page_test.py run the other scripts."""

import glob
import os
import re

import scripts

ROOT = os.path.dirname(scripts.LAUNCH)
PAGES = ("README.md", *sorted(glob.glob("docs/**/*.md", root_dir=ROOT, recursive=True)))
EXAMPLE = re.compile(r"    ((?:for .*)?(?:ISOSCALE\w*=\S+ )?"
                     r"(?:launch/(?:mpirun\.sh|sweep)|sbatch|qsub) .*)")
#: What a usage text leaves open, and what is put there.
OPEN = {"N": "8", "COMMAND": "run", "PROGRAM": "true", "DIR": "."}


def usages(script):
    """The calls that a script's usage, or the comment at its top, shows: without what is optional,
    and with it where the text says what it is."""
    with open(os.path.join(scripts.LAUNCH, script), encoding="utf-8") as file:
        text = file.read()
    shown = re.findall(r"^(?:Usage:|      ) (.*\blaunch/.*)$", text, re.M)
    shown += [re.sub(r" *\\\n# *", " ", call)
              for call in re.findall(r"^#   ((?:sbatch|qsub) -.*(?:\\\n#.*)+)$", text, re.M)]
    for call in shown:
        call = re.sub(r"\[[^]]*(?:\.\.\.|--)\]|(?<= )--(?= (?:COMMAND|\[OPTION OF))", "", call)
        if "FILE..." in call:
            continue  # what the last job of a sweep does: sweep_test.Reports
        for optional in ("", r"\1"):
            words = re.sub(r"\[([^]]*)\]", optional, call).split()
            yield " ".join(OPEN.get(word, word) for word in words)


class Examples(scripts.Case):
    """isoscale, ssh and the schedulers are stand-ins; each job that is submitted is run at once."""

    def setUp(self):
        super().setUp()
        self.node_of(16)
        os.symlink(scripts.LAUNCH, self.path("launch"))
        self.program = self.stand_in("isoscale", "true")
        self.stand_in("ssh", "true")
        self.stand_in("scontrol", "exit 1")
        self.stand_in("sinfo", 'echo "gpu* 2:32:2"')
        self.stand_in_for_mpirun()
        # The stand-in behaves as Slurm, which takes a script and no binary. The wrapped command is
        # the report of a sweep.
        self.stand_in("sbatch", """while case "$1" in -*) true ;; *) false ;; esac; do
  case "$1" in
    --wrap) echo 2; exit ;;
    --nodes=*) nodes=${1#*=} ;;
    --ntasks-per-node=*) tasks=${1#*=} ;;
    --gpus-per-node=*) gpus=${1#*=} ;;
  esac
  shift
done
grep -q "^#SBATCH" "$1" || { echo "sbatch: error: $1 is no batch script" >&2; exit 1; }
SLURM_JOB_ID=1 SLURMD_NODENAME=n1 SLURM_JOB_NODELIST=n SLURM_SUBMIT_DIR=. \\
  SLURM_JOB_NUM_NODES=$nodes SLURM_NTASKS=$((nodes * tasks)) \\
  SLURM_NTASKS_PER_NODE=$tasks SLURM_GPUS_ON_NODE=$gpus "$@" || exit
echo 1""")
        self.stand_in("qsub", """while [ "$1" != -- ]; do shift; done; shift
printf "a\\na\\n" > nodes
case "$*" in *" --report "*) ;; *)
  PBS_JOBID=1 PBS_O_WORKDIR=. PBS_NODEFILE=nodes "$@" || exit ;;
esac
echo 1""")
        self.write("hosts.txt", "a\nb\n")

    def started(self, example, **environment):
        """What mpirun was called with, once per launch."""
        self.assert_exit(0, self.run_among_stand_ins("bash", "-ec", example, ISOSCALE=self.program,
                                                     **environment))
        return self.taken_calls()

    def test_each_starts_what_it_says(self):
        shown = 0
        for page in PAGES:
            with open(os.path.join(ROOT, page), encoding="utf-8") as file:
                examples = [match[1] for match in map(EXAMPLE.match, file) if match]
            shown += len(examples)
            for example in examples:
                with self.subTest(page=page, example=example):
                    job = {"SLURM_NTASKS": "2"} if "# in a job" in " ".join(example.split()) else {}
                    example = example.replace(" --wait ", " ")  # nothing is measured
                    self.assertTrue(self.started(example, **job))
        self.assertGreater(shown, 6)

    def test_the_usage_of_each_script_starts_what_it_says(self):
        for script in ("mpirun.sh", "sweep", "bind.sh", "slurm.sbatch", "pbs.sh"):
            calls = set(usages(script))
            self.assertTrue(calls, script)
            for call in calls:
                with self.subTest(script=script, call=call):
                    # Without options the number of ranks is that of a job.
                    started = self.started(call,
                                           **{"SLURM_NTASKS": "2"} if script == "mpirun.sh" else {})
                    self.assertTrue(started or "--print" in call, call)

    def test_jobs_that_become_one_curve(self):
        """Each measures one count, to a file of its own."""
        with open(os.path.join(ROOT, "docs/launches.md"), encoding="utf-8") as file:
            [loop, sweep] = [match[1] for match in map(EXAMPLE.match, file) if match]
        for example, name in [(loop, "n"), (sweep, "nodes-")]:
            calls = self.started(example)
            self.assertEqual(len(calls), 4)
            for nodes, call in zip((1, 2, 4, 8), calls):
                self.assertTrue(call.startswith(f"-n {8 * nodes} "), call)
                self.assertIn(f"{name}{nodes}.h5 ", call)
                self.assertIn(f" --ranks {8 * nodes} ", call + " ")
                self.assertTrue(call.endswith("--device cuda"), call)
