# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""Every refusal: one clear message from one rank, exit 2, nothing left behind."""

import concurrent.futures
import os
import re
import subprocess

import harness

QUICK = ["--max-time", "0.2s"]
#: Commands, and what the one message of each must hold; unit tests have more that parsers refuse.
CASES = """
run --model gpt-1.3 | gpt-1.3 | gpt-1.3b
run --model missing.toml | missing.toml
run --set schedule=zb --workload pp | zb | gpipe | 1f1b
run --ranks 1,1 | --ranks
run --suite fastest | fastest | quick
run --model gpt-175b --workload dp | gpt-175b | TiB | free
run --workload dp --set batch=25 --set microbatch=8 | batch=25 | 24 and 32
run --workload collectives --set op=all_reduc | 'all_reduc' | did you mean 'all_reduce'
run --workload collectives --set sizes=1TiB | 1099511627776 | at most
run --workload collectives --dtype f64 --set sizes=31GiB | GiB | free | smaller sizes
run --workload collectives --set axis=up | 'up' | world
run --workload collectives --device host --set types=bf16 | types=bf16 | host
run --workload gemm --set shapes=cubes | 'cubes' | powers
run --device host --workload memory --set numa=0,777 | NUMA node 777
run --device host --workload memory --set kinds=l2 | kinds
run --workload infer --set batch=1,none | batch | none
run --workload infer --mesh cp=2 | cp
run --device host --workload infer --dtype fp8 | fp8
run --workload serve --set dispatch=random | dispatch | round-robin
run --workload tiles --set image=big | image = 'big' | 256x512
run --workload tiles --set boundary=open | periodic|fixed
run --workload hybrid --device host --set transport=nccl,smoke | smoke
run --workload algorithms --device host | algorithms | cuda | host
run --workload p2p | p2p needs 2 ranks
run --workload p2p --set pairs=al | 'al' | isolated
run --workload p2p --set kinds=latency,bandwith | bandwith | did you mean 'bandwidth'
run --workload p2p --set kinds=latency,latency | twice
run --workload p2p --set size=0 | size
run --workload p2p --set size=1TB | size | too large
run --workload p2p --set expect=fast | expect | fast
run --workload p2p --set renew=0 | renew | too small
run --output /nonexistent/x.h5 | /nonexistent | does not exist
run nothing.toml | nothing.toml
report | report
report nothing.h5 | nothing.h5 | no such file
list options dpp | dpp | dp
check --ranks 2 | --ranks
check --device host --allow devise | devise | device
"""
#: On two ranks.
CASES_OF_TWO_RANKS = """
run --nonsense | --nonsense
run --workload dp --ranks 3 | only 2
run --workload tp --mesh tp=3 | tp=3
run --workload hybrid --mesh pp=2 --model odd.toml | pp=2 | layers
run --workload tiles --ranks 2 --set image=3 | rows of the image | cp=2
run --workload tiles --ranks 2 --set image=2 --set kernel=5 | 2 rows over cp=2 | 4 rows or more
run --workload gemm --model tiny --set shapes=model --mesh ep=2 | no experts | leave ep out
run --output /nonexistent/x.h5 | /nonexistent
run --workload dp --inject slow-rank=7:2 | --inject | rank 7 does not exist
"""


class Usage(harness.Case):
    """What cannot be meant, or cannot be done here."""

    def check(self, table, **how):
        before = self.files()
        cases = [line.split(" | ") for line in table.strip().splitlines()]
        # Some at a time: a launch that is refused mostly waits.
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            ended = pool.map(lambda case: self.isoscale(case[0], **how), cases)
        for (command, *needles), done in zip(cases, ended):
            with self.subTest(command=command):
                self.assert_refused(done, *needles)
        self.assertEqual(self.files(), before)

    def test_each_is_one_message(self):
        self.check(CASES)

    def test_one_rank_speaks_for_all(self):
        self.write("odd.toml",
                   "hidden = 32\nheads = 4\nlayers = 3\nsequence = 8\nvocabulary = 64\n")
        self.check(CASES_OF_TWO_RANKS, ranks=2)


class Full(harness.Case):
    """Standard output that takes nothing."""

    def test_what_is_lost_is_told_in_one_line_and_by_the_exit_code(self):
        self.sample()
        for arguments in ("--help", "list models", "report run.h5", "check --device host",
                          "run --dry-run --device host --workload dp --model tiny"):
            with self.subTest(arguments=arguments), open("/dev/full", "wb") as full:
                done = subprocess.run([self.program, *arguments.split()], cwd=self.dir,
                                      env=harness.clean_environment(), stdout=full,
                                      stderr=subprocess.PIPE, text=True, check=False,
                                      timeout=60 * harness.PATIENCE)
                self.assertEqual((done.returncode, done.stderr),
                                 (1, "isoscale: standard output cannot be written\n"))


class Output(harness.Case):
    """The output file is looked at before anything runs."""

    def test_an_existing_file_is_kept_without_force(self):
        self.write("run.h5", "precious")
        self.assert_refused(self.isoscale("run", *QUICK, "--output run.h5"), "run.h5", "--force")
        self.assertEqual(self.read("run.h5"), "precious")
        self.run_ok("run --workload dp", *QUICK, "--output run.h5 --force")
        self.run_ok("report run.h5")

    def test_a_directory_as_output(self):
        os.mkdir(self.path("run.h5"))
        self.assert_refused(self.isoscale("run", *QUICK, "--output run.h5 --force"), "run.h5")

    def test_dry_run_writes_nothing(self):
        done = self.run_ok("run --dry-run --workload hybrid --model tiny", ranks=4)
        self.assertEqual(self.files(), [])
        self.assert_shown(done.stdout, "hybrid", "GFLOP", "MiB", "dp=2,tp=2", "3 times",
                          "tp intra-node", "nodes", " in all")

    def test_a_plan_for_more_ranks_than_were_started(self):
        done = self.run_ok("run --dry-run --workload hybrid --model gpt-13b --ranks 32 --mesh "
                           "tp=8,pp=4 --device host")
        self.assertIn("tp=8,pp=4", done.stdout)
        self.assertIn("1 of 32 ranks were started", done.stdout)
        self.assertRegex(done.stdout, r"gpt-13b +32 +\? tp=8,pp=4")
        self.assertNotIn("intra-node", done.stdout)
        done = self.run_ok("run --dry-run --device cuda --workload hybrid --model gpt-13b --ranks "
                           "32 --mesh tp=8,pp=4 --ranks-per-node 8")
        self.assertRegex(done.stdout, r"gpt-13b +32 +4 tp=8,pp=4.*tp intra-node, pp inter-node")
        self.assertEqual(self.files(), [])

    def test_a_plan_that_a_data_sheet_prices(self):
        plan = "run --dry-run --workload hybrid --model gpt-13b --ranks 32 --mesh tp=8,pp=4"
        priced = self.run_ok(plan, "--dtype bf16 --on h100-ndr").stdout
        self.assertRegex(priced.splitlines()[0], r"H100 SXM.*8 ranks a node")
        self.assertRegex(priced, r"gpt-13b +32 +4 tp=8,pp=4.*tp intra-node, pp inter-node")
        # The same sheet is assumed for a type, and for a size, that a host does not have.
        assumed = self.run_ok(plan, "--dtype bf16").stdout
        self.assertIn("--on", assumed.splitlines()[0])
        loops = [re.search(r"tp=8,pp=4 +([\d.]+ \w+) ", text)[1] for text in (priced, assumed)]
        self.assertEqual(loops[0], loops[1])
        # It is named too where the plan is refused on it.
        refused = "run --dry-run --workload dp --dtype bf16 --model gpt-175b --ranks 1"
        self.assert_refused(self.isoscale(refused), "h100-ndr is assumed", "74.5 GiB")
        text = self.run_ok(plan, "--device host").stdout
        self.assertIn("host device", text.splitlines()[0])
        self.assertRegex(text, r"does not fit: [\d.]+ GiB of [\d.]+ GiB")
        self.assert_refused(self.isoscale("run --dry-run --on h100-nrd"), "h100-ndr")
        self.assert_refused(self.isoscale("run --on h100-ndr"), "--dry-run")
        self.assertEqual(self.files(), [])


class Singletons(harness.Case):
    """Processes that a launcher started without wiring must not each measure themselves."""

    def stopped(self, needle, **environment):
        done = self.isoscale("run --workload dp", *QUICK, "--output x.h5", **environment)
        self.assert_refused(done, needle)
        self.assertEqual(self.files(), [])

    def test_signs_of_a_launcher(self):
        self.stopped("PMI_SIZE", PMI_SIZE="4")
        self.stopped("SLURM", SLURM_STEP_NUM_TASKS="2", SLURM_PROCID="0")

    def test_only_the_first_speaks(self):
        done = self.ended(2, "run --workload dp", *QUICK, SLURM_PROCID="3")
        self.assertNotIn("isoscale:", done.stderr)

    def test_one_process_that_was_meant_is_not_stopped(self):
        self.run_ok("run --workload dp", *QUICK, "--output x.h5 --quiet", PMI_SIZE="1",
                    SLURM_STEP_NUM_TASKS="4")
