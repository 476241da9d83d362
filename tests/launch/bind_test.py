# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""launch/bind.sh: where ranks go on made-up nodes, and that they do go there."""

import os
import re

import scripts

GPU, NIC = ("0x10de", "0x030200"), ("0x15b3", "0x020700")
LINE = re.compile(r"rank (?P<rank>\d+) \(local \d+ of \d+\) on \S+: (?:GPU (?P<gpu>\d+) at "
                  r"(?P<address>\S+), NUMA node (?P<numa>-?\d+)|no GPU), CPUs (?P<cpus>[\d,-]+), "
                  r"cores: (?P<cores>\d+)(?:, adapter (?P<nic>\S+))?(?: \(left as it was: "
                  r"(?P<why>.*)\))?$")


def cpus_of(text):
    """0-2,8 as a set."""
    ends = [part.split("-") for part in text.split(",") if part]
    return {cpu for end in ends for cpu in range(int(end[0]), int(end[-1]) + 1)}


class Tree:
    """A made-up sysfs."""

    def __init__(self, root):
        self.root = root

    def write(self, path, text):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="ascii") as file:
            file.write(text + "\n")

    def link(self, path, to):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.symlink(os.path.join(self.root, to), path)

    def cpus(self, nodes, threads=1):
        """nodes: the CPU list of each NUMA node, in which siblings are half of the CPUs apart."""
        everything = sorted(cpu for node in nodes for cpu in cpus_of(node))
        self.write("devices/system/cpu/online", f"0-{everything[-1]}")
        apart = len(everything) // threads
        for cpu in everything:
            siblings = [cpu % apart + apart * thread for thread in range(threads)]
            self.write(f"devices/system/cpu/cpu{cpu}/topology/thread_siblings_list",
                       ",".join(map(str, siblings)))
        for i, node in enumerate(nodes):
            self.write(f"devices/system/node/node{i}/cpulist", node)

    def device(self, kind, path, numa, near):
        """A PCI device at a path such as pci0000:00/0000:00:01.0/0000:1b:00.0."""
        address = path.rsplit("/", maxsplit=1)[-1]
        for name, text in (("vendor", kind[0]), ("class", kind[1]), ("numa_node", str(numa)),
                           ("local_cpulist", near)):
            self.write(f"devices/{path}/{name}", text)
        self.link(f"bus/pci/devices/{address}", f"devices/{path}")

    def adapter(self, name, path, numa, near, state="4: ACTIVE"):
        self.device(NIC, path, numa, near)
        self.link(f"class/infiniband/{name}/device", f"devices/{path}")
        self.write(f"class/infiniband/{name}/ports/1/state", state)


class Case(scripts.Case):
    def setUp(self):
        super().setUp()
        self.tree = Tree(self.path("sys"))
        self.stand_in("nvidia-smi", "exit 9")  # as on a node whose driver is not loaded

    def line(self, text):
        match = LINE.match(text)
        self.assertTrue(match, text)
        return match.groupdict()

    def printed(self, ranks, *options, **environment):
        """What is said of each rank of a node, or of the one that an option names."""
        done = self.script_ok("bind.sh", "--print --sysfs", self.tree.root, "--local-ranks",
                              str(ranks), *options, **environment)
        return [self.line(text) for text in done.stdout.splitlines()]

    def map(self, ranks, *options, **environment):
        lines = self.printed(ranks, *options, **environment)
        self.assertEqual([int(line["rank"]) for line in lines], list(range(ranks)))
        return lines

    def one(self, rank, ranks, *options, **environment):
        [line] = self.printed(ranks, "--local-rank", str(rank), *options, **environment)
        return line

    def assert_disjoint(self, lines):
        taken = [cpu for line in lines for cpu in cpus_of(line["cpus"])]
        self.assertEqual(len(taken), len(set(taken)))


class EightGpus(Case):
    """Two sockets of 32 cores with two threads each; a switch for each GPU and its adapter."""

    ALL = "0-127"
    NODES = ["0-31,64-95", "32-63,96-127"]
    ADDRESSES = ["1b", "43", "52", "61", "9d", "c3", "d1", "df"]

    def setUp(self):
        super().setUp()
        self.tree.cpus(self.NODES, threads=2)
        for i, bus in enumerate(self.ADDRESSES):
            node, number = i // 4, int(bus, 16)
            root = f"{number - 2:02x}"
            switch = f"pci0000:{root}/0000:{root}:01.0/0000:{number - 1:02x}:00.0"
            self.tree.device(GPU, f"{switch}/0000:{bus}:00.0", node, self.NODES[node])
            # Named against the order of buses: nearness decides, not names.
            self.tree.adapter(f"mlx5_{7 - i}", f"{switch}/0000:{number + 1:02x}:00.0", node,
                              self.NODES[node])
        # For storage, on a root port of its own; and one of no GPU's, and a sound device of NVIDIA.
        self.tree.adapter("mlx5_8", "pci0000:05/0000:05:01.0/0000:06:00.0", 0, self.NODES[0])
        self.tree.device(("0x8086", "0x030000"), "pci0000:00/0000:00:02.0", 0, self.NODES[0])
        self.tree.device(("0x10de", "0x040300"), "pci0000:00/0000:00:03.0", 0, self.NODES[0])

    def test_a_rank_per_gpu(self):
        lines = self.map(8, "--cpus", self.ALL)
        for i, line in enumerate(lines):
            self.assertEqual((line["gpu"], line["address"], line["numa"], line["nic"], line["why"]),
                             (str(i), f"0000:{self.ADDRESSES[i]}:00.0", str(i // 4),
                              f"mlx5_{7 - i}:1", None))
            self.assertEqual(line["cores"], "8")
        self.assertEqual(lines[0]["cpus"], "0-7,64-71")
        self.assertEqual(lines[5]["cpus"], "40-47,104-111")
        self.assert_disjoint(lines)

    def test_two_ranks_per_gpu(self):
        lines = self.map(16, "--cpus", self.ALL)
        self.assertEqual([line["address"] for line in lines[:8]],
                         [line["address"] for line in lines[8:]])
        self.assertEqual({line["cores"] for line in lines}, {"4"})
        self.assert_disjoint(lines)

    def test_a_mask_of_its_own_is_only_narrowed(self):
        for cpus, needed, expected, why in [
                ("0-15", 1, "0-15", None), ("28-35", 1, "28-31", None),
                ("28-35", 8, "28-35", r"near the GPU would be 4, .* 8 \(--cores\)$"),
                ("32-39", 1, "32-39", "^none of them")]:
            with self.subTest(cpus=cpus, needed=needed):
                line = self.one(0, 8, "--cpus", cpus, "--mask own --cores", str(needed))
                self.assertEqual((line["cpus"], line["why"] is None), (expected, why is None))
                self.assertRegex(line["why"] or "", why or "^$")

    def test_exactly_so_many_cores_wherever_gpus_are(self):
        lines = self.map(3, "--cpus", self.ALL, "--ignore-gpus --cores 20")
        self.assertEqual([line["cpus"] for line in lines],
                         ["0-19,64-83", "21-40,85-104", "42-61,106-125"])
        self.assertEqual({line["gpu"] for line in lines}, {None})

    def test_a_mask_of_the_node_is_shared_out(self):
        """Half of each socket is the job's."""
        lines = self.map(8, "--cpus 0-15,32-47")
        self.assertEqual([line["cpus"] for line in lines],
                         ["0-3", "4-7", "8-11", "12-15", "32-35", "36-39", "40-43", "44-47"])
        self.assertEqual(self.one(0, 8, "--cpus 0-15,32-47 --cores 8")["cpus"], "0-15,32-47")

    def test_visible_devices(self):
        for visible, address, number in [("7", "df", "0"), ("3,2,1,0", "61", "0"),
                                         ("1,9,0", "43", "0")]:
            with self.subTest(visible=visible):
                line = self.one(0, 8, "--cpus", self.ALL, CUDA_VISIBLE_DEVICES=visible)
                self.assertEqual((line["address"], line["gpu"]), (f"0000:{address}:00.0", number))
        self.assertIsNone(self.one(0, 8, "--cpus", self.ALL, CUDA_VISIBLE_DEVICES="")["address"])

    def test_one_visible_gpu_per_rank_shares_no_core(self):
        lines = [self.one(i, 8, "--cpus", self.ALL, CUDA_VISIBLE_DEVICES=str(i)) for i in range(8)]
        self.assertEqual([line["address"] for line in lines],
                         [f"0000:{bus}:00.0" for bus in self.ADDRESSES])
        self.assertEqual({line["gpu"] for line in lines}, {"0"})
        self.assert_disjoint(lines)

    def test_what_the_driver_shows_counts(self):
        """Of the machine's GPUs, this job has two, which its own numbers begin with 0 for."""
        self.stand_in("nvidia-smi", 'echo "00000000:9D:00.0, GPU-aaaa"\n'
                                    'echo "00000000:DF:00.0, GPU-bbbb"')
        lines = self.map(2, "--cpus", self.ALL)
        self.assertEqual([line["address"] for line in lines], ["0000:9d:00.0", "0000:df:00.0"])
        self.assertEqual([line["cores"] for line in lines], ["16", "16"])
        self.assertEqual(self.one(0, 1, "--cpus", self.ALL,
                                  CUDA_VISIBLE_DEVICES="GPU-bb")["address"],
                         "0000:df:00.0")

    def exported(self, *options, **environment):
        done = self.script_ok("bind.sh", "--sysfs", self.tree.root,
                              "--local-rank 6 --local-ranks 8", *options, "-- env", **environment)
        return dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)

    def test_exports_only_what_is_asked_for(self):
        names = ("CUDA_VISIBLE_DEVICES", "UCX_NET_DEVICES", "NCCL_IB_HCA")
        plain = self.exported()
        self.assertEqual([plain.get(name) for name in names], [None, None, None])
        asked = self.exported("--set-visible --set-nic")
        self.assertEqual([asked.get(name) for name in names], ["6", "mlx5_1:1", None])
        # NCCL chooses by itself; what is said to it for all ranks stays so.
        self.assertEqual(self.exported("--set-nic", NCCL_IB_HCA="=mlx5_2")["NCCL_IB_HCA"],
                         "=mlx5_2")
        kept = self.exported("--set-nic", UCX_NET_DEVICES="mlx5_8:1")
        self.assertEqual([kept.get(name) for name in names], [None, "mlx5_8:1", None])
        self.stand_in("nvidia-smi", "for bus in 1B 43 52 61 9D C3 D1 DF; do "
                                    'echo "00000000:$bus:00.0, GPU-$bus"; done')
        self.assertEqual(self.exported("--set-visible")["CUDA_VISIBLE_DEVICES"], "GPU-D1")

    def test_a_port_that_is_down_does_not_count(self):
        self.tree.write("class/infiniband/mlx5_7/ports/1/state", "1: DOWN")
        self.assertEqual(self.one(0, 8, "--cpus", self.ALL)["nic"][:5], "mlx5_")
        self.assertNotEqual(self.one(0, 8, "--cpus", self.ALL)["nic"], "mlx5_7:1")


class PciBox(Case):
    """One socket of 16 cores without NUMA; two switches of two GPUs, each with one adapter."""

    def setUp(self):
        super().setUp()
        self.tree.cpus(["0-15"])
        for i, bus in enumerate(["01", "02", "41", "42"]):
            root = f"pci0000:{bus[0]}0/0000:{bus[0]}0:01.0"
            self.tree.device(GPU, f"{root}/0000:{bus}:00.0", -1, "0-15")
            if i % 2 == 0:
                self.tree.adapter(f"mlx5_{i // 2}", f"{root}/0000:{bus[0]}3:00.0", -1, "0-15")

    def test_a_rank_per_gpu(self):
        lines = self.map(4, "--cpus 0-15")
        self.assertEqual([line["cpus"] for line in lines], ["0-3", "4-7", "8-11", "12-15"])
        self.assertEqual([line["nic"] for line in lines],
                         ["mlx5_0:1", "mlx5_0:1", "mlx5_1:1", "mlx5_1:1"])
        self.assertEqual({line["numa"] for line in lines}, {"-1"})


class NoGpu(Case):
    """Two sockets whose CPUs are numbered in turn."""

    def setUp(self):
        super().setUp()
        self.tree.cpus(["0,2,4,6,8,10,12,14", "1,3,5,7,9,11,13,15"])

    def test_ranks_stay_on_one_socket(self):
        lines = self.map(4, "--cpus 0-15")
        self.assertEqual([line["cpus"] for line in lines],
                         ["0,2,4,6", "8,10,12,14", "1,3,5,7", "9,11,13,15"])
        self.assertEqual({line["address"] for line in lines}, {None})

    def test_fewer_cores_than_are_needed(self):
        """Said of the ranks' cores: there is no GPU for them to be near to."""
        for cpus, needed, share in [("0-1", 1, 0), ("0-7", 3, 2)]:
            for line in self.map(4, "--cpus", cpus, "--cores", str(needed)):
                self.assertEqual(cpus_of(line["cpus"]), cpus_of(cpus))
                self.assertRegex(line["why"], f"ranks may use would be {share}, .* {needed} ")

    def test_a_mask_of_its_own_is_left(self):
        self.assertEqual(self.one(1, 2, "--cpus 3-5 --mask own")["cpus"], "3-5")


class Ranks(Case):
    """Which rank this is, and that its program runs where the line says."""

    def setUp(self):
        super().setUp()
        self.allowed = sorted(os.sched_getaffinity(0))
        self.tree.cpus([f"0-{self.allowed[-1]}"])
        self.tree.device(GPU, "pci0000:00/0000:00:01.0", 0, str(self.allowed[0]))
        self.show = ["--", "sh", "-c", ["grep Cpus_allowed_list /proc/self/status"]]

    def started(self, **environment):
        return self.script("bind.sh", "--sysfs", self.tree.root, *self.show, **environment)

    def test_the_program_runs_on_these_cpus(self):
        done = self.assert_exit(0, self.started(OMPI_COMM_WORLD_RANK="9",
                                                OMPI_COMM_WORLD_LOCAL_RANK="0",
                                                OMPI_COMM_WORLD_LOCAL_SIZE="1"))
        self.assertEqual(done.stdout.split(), ["Cpus_allowed_list:", str(self.allowed[0])])
        line = self.line(done.stderr.strip())
        self.assertEqual((line["rank"], line["cpus"]), ("9", str(self.allowed[0])))

    def test_each_launcher_says_which_rank(self):
        for names in [("OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
                      ("MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
                      ("SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE")]:
            with self.subTest(names=names):
                values = ("3", "4(x2)" if "SLURM" in names[0] else "4")
                done = self.started(**dict(zip(names, values)))
                self.assertIn("(local 3 of 4)", done.stderr)
        for node, ranks in [("0", 4), ("1", 8), ("3", 8), ("4", 5)]:
            done = self.started(SLURM_LOCALID="3", SLURM_STEP_TASKS_PER_NODE="4,8(x3),5",
                                SLURM_NODEID=node)
            self.assertIn(f"(local 3 of {ranks})", done.stderr)
        # mpirun inside of a Slurm job: its own words count.
        done = self.started(SLURM_LOCALID="0", SLURM_STEP_TASKS_PER_NODE="1",
                            OMPI_COMM_WORLD_LOCAL_RANK="1", OMPI_COMM_WORLD_LOCAL_SIZE="2")
        self.assertIn("(local 1 of 2)", done.stderr)

    def test_a_mask_is_the_ranks_own_if_it_is_narrower_than_its_parents(self):
        """Else it is shared out, also where the parent's is the narrower one."""
        if len(self.allowed) < 2:
            self.skipTest("needs two CPUs")
        one, two = self.allowed[:2]
        command = [os.path.join(scripts.LAUNCH, "bind.sh"), "--sysfs", self.tree.root,
                   "--ignore-gpus --local-rank 1 --local-ranks 2 --print; true"]
        for parent, own, expected in [(f"{one},{two}", one, one), (one, f"{one},{two}", two)]:
            done = self.run_among_stand_ins("taskset", "-c", str(parent), "sh", "-c",
                                            " ".join(["taskset", "-c", str(own), *command]))
            self.assertEqual(self.line(done.stdout.strip())["cpus"], str(expected))

    def test_refusals(self):
        self.assert_script_refused(self.started(), "mpirun or srun")
        for arguments, needle in [([], "say what to run"), (["--print"], "mpirun or srun"),
                                  (["--mask", "mine", "--print"], "own, shared or auto"),
                                  (["--sysfs", "/nonexistent", "--print"], "/nonexistent"),
                                  (["--cores", "0", "--print"], "'0'"),
                                  (["--core", "--print"], "--core")]:
            with self.subTest(arguments=arguments):
                self.assert_script_refused(self.script("bind.sh", *arguments), needle)

    def test_what_is_no_number_is_refused(self):
        value = "a[$(touch ran)0]"
        rank = {"OMPI_COMM_WORLD_LOCAL_RANK": "0", "OMPI_COMM_WORLD_LOCAL_SIZE": "1"}
        for name in rank:
            self.assert_script_refused(self.started(**{**rank, name: value}), f"'{value}'")
        done = self.script("bind.sh", "--print --local-ranks 1 --cpus", [value])
        self.assert_script_refused(done, "--cpus", f"'{value}'")
        self.assertFalse(os.path.exists(self.path("ran")))
