// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/text.hpp"
#include "machine/facts.hpp"
#include "machine/job_environment.hpp"
#include "machine/kernel_files.hpp"
#include "machine/memory_on_node.hpp"
#include "scratch_tree.hpp"
#include "words.hpp"

namespace isoscale::machine {
namespace {

using testing_support::known;
using testing_support::Texts;
using units::Bytes;
using units::Seconds;

TEST(CpuLimit, IsTheTightestOfAllGroupsAboveAndAbsentWhereNoneMakesSense) {
  for (const auto& [files, cpus] :
       {std::pair{Texts{{"/proc/self/cgroup", "0::/slurm/job_7/step_0\n"},
                        {"/sys/fs/cgroup/slurm/job_7/step_0/cpu.max", "max 100000\n"},
                        {"/sys/fs/cgroup/slurm/job_7/cpu.max", "250000 100000\n"},
                        {"/sys/fs/cgroup/slurm/cpu.max", "6400000 100000\n"}},
                  2.5},
        // The group is not visible below the mount.
        {{{"/proc/self/cgroup", "0::/docker/0123\n"}, {"/sys/fs/cgroup/cpu.max", "50000 100000\n"}},
         0.5},
        // Version one and its paired controllers.
        {{{"/proc/self/cgroup", "4:memory:/a\n3:cpu,cpuacct:/a/b\n0::/\n"},
          {"/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us", "-1\n"},
          {"/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_period_us", "100000\n"},
          {"/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "400000\n"},
          {"/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n"}},
         4.0}}) {
    EXPECT_THAT(cpu_limit(known(files)), Optional(cpus));
  }
  for (const Texts& files :
       {Texts{}, {{"/proc/self/cgroup", "0::/\n"}}, {{"/proc/self/cgroup", "nonsense\n\n::\n"}}}) {
    EXPECT_EQ(cpu_limit(known(files)), std::nullopt);
  }
  for (const char* text : {"max 100000\n", "", "100000\n", "-1 100000\n", "100000 0\n", "1 2 3\n",
                           "99999999999999999999 100000\n", "lots 100000\n"}) {
    EXPECT_EQ(cpu_limit(known({{"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/cpu.max", text}})),
              std::nullopt)
        << text;
  }
}

TEST(MemoryAvailable, KnowsVersionOneAndItsNumberForNoLimit) {
  const Texts limited{{"/proc/self/cgroup", "4:memory:/job\n"},
                      {"/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1000\n"},
                      {"/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "1200\n"},
                      {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"}};
  EXPECT_THAT(memory_available(known(limited)), Optional(Bytes{0}));
  EXPECT_EQ(memory_available(
                known({{"/proc/self/cgroup", "4:memory:/\n"},
                       {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"}})),
            std::nullopt);
}

TEST(MemoryAvailable, IsTheLeastOfTheMachineAndItsGroups) {
  const Texts machine{
      {"/proc/meminfo", "MemTotal:  1000 kB\nMemFree: 10 kB\nMemAvailable: 300 kB\n"}};
  EXPECT_THAT(memory_available(known(machine)), Optional(Bytes{307'200}));
  Texts limited = machine;
  limited["/proc/self/cgroup"] = "0::/job/task\n";
  limited["/sys/fs/cgroup/job/task/memory.max"] = "max\n";
  limited["/sys/fs/cgroup/job/task/memory.current"] = "5000\n";
  limited["/sys/fs/cgroup/job/memory.max"] = "100000\n";
  limited["/sys/fs/cgroup/job/memory.current"] = "60000\n";
  limited["/sys/fs/cgroup/job/memory.stat"] = "anon 1\ninactive_file 20000\nactive_file 3\n";
  EXPECT_THAT(memory_available(known(limited)), Optional(Bytes{60'000}));
  limited["/sys/fs/cgroup/job/memory.max"] = "900000000\n";
  EXPECT_THAT(memory_available(known(limited)), Optional(Bytes{307'200}));
  limited.erase("/proc/meminfo");
  EXPECT_THAT(memory_available(known(limited)), Optional(Bytes{899'960'000}));
  EXPECT_EQ(memory_available(known({})), std::nullopt);
}

TEST(Fields, AreReadFromTheKernelsTables) {
  const std::string cpuinfo = "processor\t: 0\nmodel name\t: AMD EPYC: 7763 \nflags\t: a b\n";
  EXPECT_THAT(field_of(cpuinfo, "model name"), Optional(std::string{"AMD EPYC: 7763"}));
  EXPECT_EQ(field_of(cpuinfo, "model"), std::nullopt);
  EXPECT_EQ(field_of("model name :\n", "model name"), std::nullopt);
  const std::string meminfo = "MemTotal:       16384256 kB\nMemFree: 1 kB\nMemAvailable: 8 kB\n";
  EXPECT_THAT(meminfo_field(meminfo, "MemTotal"), Optional(Bytes{16777478144}));
  EXPECT_THAT(meminfo_field(meminfo, "MemAvailable"), Optional(Bytes{8192}));
  EXPECT_EQ(meminfo_field(meminfo, "HugePages_Total"), std::nullopt);
  EXPECT_EQ(meminfo_field("MemTotal: lots kB\n", "MemTotal"), std::nullopt);
}

TEST(MachineFacts, AgreeWithTheKernel) {
  const MachineFacts facts = machine_facts();
  std::array<char, 256> host{};
  ASSERT_EQ(gethostname(host.data(), host.size()), 0);
  EXPECT_EQ(facts.host, host.data());

  cpu_set_t mask;
  ASSERT_EQ(sched_getaffinity(0, sizeof mask, &mask), 0);
  std::vector<int> allowed;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &mask)) allowed.push_back(cpu);
  }
  EXPECT_EQ(facts.bound_cpus, allowed);
  EXPECT_GE(facts.bound_core_ids.size(), 1U);
  EXPECT_LE(facts.bound_core_ids.size(), allowed.size());
  const std::set<int> different(facts.bound_core_ids.begin(), facts.bound_core_ids.end());
  EXPECT_EQ(different.size(), facts.bound_core_ids.size());
  if (facts.cores) {
    EXPECT_GE(*facts.cores, static_cast<int>(different.size()));
  }
  ASSERT_TRUE(facts.memory_total.has_value());
  EXPECT_GT(*facts.memory_total, Bytes{1U << 20U});
  EXPECT_LE(facts.memory_available.value_or(Bytes{0}), *facts.memory_total);
  EXPECT_THAT(facts.os, Optional(StartsWith("Linux ")));
}

TEST(MachineFacts, FollowTheBinding) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  const MachineFacts facts = machine_facts();
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_THAT(facts.bound_cpus, ElementsAre(first));
  EXPECT_EQ(facts.bound_core_ids.size(), 1U);
}

TEST(MachineFacts, ListTheCpusOfEachNumaNode) {
  ASSERT_EQ(setenv("HWLOC_SYNTHETIC", "numa:2 core:2 pu:1", 1), 0);
  const MachineFacts facts = machine_facts();
  unsetenv("HWLOC_SYNTHETIC");
  EXPECT_THAT(facts.numa_nodes, Optional(2));
  EXPECT_THAT(facts.numa_cpus,
              ElementsAre(Pair("0", ElementsAre(0, 1)), Pair("1", ElementsAre(2, 3))));
}

TEST(RecordedEnvironment, KeepsListedNamesInListOrderAndNothingElse) {
  const auto recorded = recorded_environment(known({{"UCX_TLS", "rc,sm"},
                                                    {"OMP_NUM_THREADS", "4"},
                                                    {"SLURM_JWT", "secret"},
                                                    {"SLURM_JOB_ID", "17"},
                                                    {"NCCL_SECRET", "x"},
                                                    {"AWS_SECRET_ACCESS_KEY", "x"},
                                                    {"NCCL_ALGO", ""}}));
  EXPECT_THAT(recorded, ElementsAre(Pair("OMP_NUM_THREADS", "4"), Pair("SLURM_JOB_ID", "17"),
                                    Pair("UCX_TLS", "rc,sm"), Pair("NCCL_ALGO", "")));
}

TEST(RecordedEnvironment, HasWhatDecidesHowGpusAreUsed) {
  for (const std::string_view name :
       base::split("NCCL_ALGO NCCL_PROTO NCCL_IB_HCA NCCL_SOCKET_IFNAME NCCL_P2P_DISABLE "
                   "NCCL_P2P_LEVEL NCCL_P2P_NET_CHUNKSIZE NCCL_NVLS_ENABLE NCCL_NET_GDR_LEVEL "
                   "NCCL_CROSS_NIC NCCL_MIN_NCHANNELS NCCL_MAX_NCHANNELS NCCL_BUFFSIZE "
                   "NCCL_IB_GID_INDEX NCCL_TOPO_FILE NCCL_HOSTID NCCL_CUMEM_ENABLE "
                   "CUDA_VISIBLE_DEVICES CUDA_DEVICE_ORDER CUDA_DEVICE_MAX_CONNECTIONS "
                   "CUDA_MPS_PIPE_DIRECTORY CUBLAS_WORKSPACE_CONFIG NVIDIA_TF32_OVERRIDE "
                   "UCX_NET_DEVICES SLURM_GPUS_PER_TASK SLURM_GPU_BIND SLURM_STEP_GPUS",
                   ' ')) {
    EXPECT_THAT(recorded_environment(known({{std::string{name}, "x"}})),
                ElementsAre(Pair(name, "x")));
  }
}

TEST(RecordedEnvironment, NeverAsksForASecret) {
  std::vector<std::string> asked;
  const auto all = recorded_environment([&](std::string_view name) {
    asked.emplace_back(name);
    return std::optional<std::string>{"set"};
  });
  EXPECT_EQ(all.size(), asked.size());
  for (const std::string& name : asked) {
    for (const char* word : {"JWT", "TOKEN", "SECRET", "PASS", "KEY", "CRED", "COOKIE"}) {
      EXPECT_THAT(name, Not(HasSubstr(word)));
    }
    EXPECT_EQ(std::count(asked.begin(), asked.end(), name), 1) << name;
  }
}

TEST(ProcessEnvironment, TellsUnsetFromEmpty) {
  ASSERT_EQ(setenv("ISOSCALE_TEST_EMPTY", "", 1), 0);
  const Lookup environment = process_environment();
  EXPECT_THAT(environment("ISOSCALE_TEST_EMPTY"), Optional(std::string{}));
  unsetenv("ISOSCALE_TEST_EMPTY");
  EXPECT_EQ(environment("ISOSCALE_TEST_EMPTY"), std::nullopt);
}

TEST(Singleton, IsFoundUnderEveryLauncherAndNotConcludedOtherwise) {
  for (const auto& [variables, says] :
       {std::pair{Texts{{"OMPI_COMM_WORLD_SIZE", "4"}},
                  "OMPI_COMM_WORLD_SIZE says that there are 4.*mpirun"},
        {{{"PMI_SIZE", "2"}, {"SLURM_PROCID", "0"}}, "PMI_SIZE .* are 2([^0-9]|$)"},
        {{{"OMPI_COMM_WORLD_SIZE", "1"}, {"PMI_SIZE", "2"}}, "PMI_SIZE"},
        {{{"SLURM_STEP_NUM_TASKS", "8"}}, "SLURM_STEP_NUM_TASKS .* are 8[^0-9].*srun --mpi=pmix"},
        {{{"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_PROCID", "3"}},
         "SLURM_PROCID .* number 3([^0-9]|$)"}}) {
    EXPECT_THAT(singleton_problem(1, known(variables)), Optional(testing::ContainsRegex(says)));
  }
  for (const auto& [ranks, variables] :
       {std::pair{1, Texts{}},
        {2, {{"OMPI_COMM_WORLD_SIZE", "4"}}},
        {4, {{"SLURM_STEP_NUM_TASKS", "8"}}},
        // One process by mpirun inside a bigger Slurm step.
        {1, {{"OMPI_COMM_WORLD_SIZE", "1"}, {"SLURM_STEP_NUM_TASKS", "8"}}},
        {1, {{"PMI_SIZE", "1"}, {"SLURM_PROCID", "3"}}},
        // A batch script, which is process 0 of one.
        {1, {{"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_PROCID", "0"}}},
        {1, {{"SLURM_STEP_NUM_TASKS", "many"}}}}) {
    EXPECT_EQ(singleton_problem(ranks, known(variables)), std::nullopt);
  }
}

std::optional<TimeLimit> limit_in(const Texts& texts) {
  return time_limit(known(texts), 1'800'000'000);
}

TEST(TimeLimitOf, SlurmIsAnEndThatOfPbsALengthAndNonsenseUnknown) {
  EXPECT_EQ(limit_in({{"SLURM_JOB_END_TIME", "1800000600"}}),
            (TimeLimit{.time = Seconds{600}, .source = "SLURM_JOB_END_TIME"}));
  EXPECT_EQ(limit_in({{"SLURM_JOB_END_TIME", "1700000000"}, {"PBS_WALLTIME", "60"}})->time,
            Seconds{0});
  EXPECT_EQ(limit_in({{"PBS_WALLTIME", "3600"}}),
            (TimeLimit{
                .time = Seconds{3600}, .source = "PBS_WALLTIME", .span = TimeLimit::Span::of_job}));
  EXPECT_EQ(limit_in({{"PBS_WALLTIME", "01:30:05"}})->time, Seconds{5405});
  EXPECT_FALSE(limit_in({}).has_value());
  for (const char* const text : {"", "soon", "-5", "1:", "1800000600s", "99999999999999999999"}) {
    EXPECT_FALSE(limit_in({{"PBS_WALLTIME", text}}).has_value()) << text;
    EXPECT_FALSE(limit_in({{"SLURM_JOB_END_TIME", text}}).has_value()) << text;
  }
}

TEST(TimeLimitWarning, IsForRunsThatAreExpectedToTakeLonger) {
  const TimeLimit limit{.time = Seconds{1200}, .source = "SLURM_JOB_END_TIME"};
  EXPECT_FALSE(time_limit_warning(std::nullopt, Seconds{1e9}).has_value());
  EXPECT_FALSE(time_limit_warning(limit, Seconds{1200}).has_value());
  EXPECT_THAT(*time_limit_warning(limit, Seconds{1201}),
              AllOf(HasSubstr("20 min"), HasSubstr("SLURM_JOB_END_TIME"), HasSubstr("--budget 18m"),
                    HasSubstr("--resume")));
  EXPECT_THAT(*time_limit_warning(TimeLimit{.time = Seconds{100}, .source = "x"}, Seconds{200}),
              HasSubstr("--budget 90s"));
  EXPECT_THAT(*time_limit_warning(TimeLimit{.time = Seconds{0}, .source = "x"}, Seconds{200}),
              Not(HasSubstr("--budget")));
  // The limit of a whole job, part of which has passed, promises nothing.
  const TimeLimit whole{
      .time = Seconds{1200}, .source = "PBS_WALLTIME", .span = TimeLimit::Span::of_job};
  EXPECT_FALSE(time_limit_warning(whole, Seconds{1200}).has_value());
  EXPECT_THAT(*time_limit_warning(whole, Seconds{1201}),
              AllOf(testing::ContainsRegex("most 20 min .*PBS_WALLTIME"), HasSubstr("--resume"),
                    Not(HasSubstr("fits")), Not(HasSubstr("ends in"))));
}

// Where a thread's memory comes from, as the kernel tells it.

/// The policy of the calling thread as linux/mempolicy.h has it; -1 = not told.
int policy() {
  int mode = -1;
  unsigned long nodes[64] = {};
  const long status = syscall(SYS_get_mempolicy, &mode, nodes, sizeof nodes * 8, nullptr, 0);
  return status == 0 ? mode & 0xFF : -1;
}

TEST(MemoryOnNode, HoldsWhileTheObjectLives) {
  constexpr int binds = 2;  // MPOL_BIND
  const int before = policy();
  if (before < 0) GTEST_SKIP() << "the kernel does not tell the policy of memory";
  {
    const MemoryOnNode first{0};
    EXPECT_EQ(policy(), binds);
  }
  // Memory near to the thread is what the default means.
  constexpr int by_default = 0, near_to_thread = 4;
  EXPECT_TRUE(policy() == before || (before == by_default && policy() == near_to_thread))
      << policy();
}

TEST(MemoryOnNode, RefusesANodeThatIsNotThere) {
  for (const int node : {-1, 4095}) {
    EXPECT_THAT(
        testing_support::usage_error<PlacementError>([&] { const MemoryOnNode nowhere{node}; }),
        AllOf(HasSubstr("no NUMA node"), HasSubstr("there are 0")));
  }
}

}  // namespace
}  // namespace isoscale::machine
