// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/text.hpp"
#include "machine/facts.hpp"
#include "machine/gpu_choice.hpp"
#include "machine/job_environment.hpp"
#include "machine/numa_memory_binding.hpp"
#include "machine/procfs_and_cgroups.hpp"
#include "scratch_tree.hpp"
#include "words.hpp"

namespace isoscale::machine {
namespace {

using settings::ShareGpu;
using namespace testing_support;  // NOLINT(google-build-using-namespace)
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

TEST(MachineFacts, AgreeWithTheKernelAndFollowTheBinding) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  std::vector<int> allowed;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &before)) allowed.push_back(cpu);
  }
  const MachineFacts facts = machine_facts();
  EXPECT_EQ(facts.bound_cpus, allowed);
  const std::set<int> different(facts.bound_core_ids.begin(), facts.bound_core_ids.end());
  EXPECT_EQ(different.size(), facts.bound_core_ids.size());
  EXPECT_GE(different.size(), 1U);
  EXPECT_LE(different.size(), allowed.size());
  EXPECT_GE(facts.cores.value_or(CPU_SETSIZE), static_cast<int>(different.size()));
  CPU_ZERO(&one);
  CPU_SET(allowed.front(), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  const MachineFacts bound = machine_facts();
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_THAT(bound.bound_cpus, ElementsAre(allowed.front()));
  EXPECT_EQ(bound.bound_core_ids.size(), 1U);

  std::array<char, 256> host{};
  ASSERT_EQ(gethostname(host.data(), host.size()), 0);
  EXPECT_EQ(facts.host, host.data());
  EXPECT_GT(facts.memory_total.value(), Bytes{1U << 20U});
  EXPECT_LE(facts.memory_available.value_or(Bytes{0}), *facts.memory_total);
  EXPECT_THAT(facts.os, Optional(StartsWith("Linux ")));
}

TEST(MachineFacts, ListTheCpusOfEachNumaNode) {
  ASSERT_EQ(setenv("HWLOC_SYNTHETIC", "numa:2 core:2 pu:1", 1), 0);
  const MachineFacts facts = machine_facts();
  unsetenv("HWLOC_SYNTHETIC");
  EXPECT_THAT(facts.numa_nodes, Optional(2));
  EXPECT_THAT(facts.numa_cpus,
              ElementsAre(Pair("0", ElementsAre(0, 1)), Pair("1", ElementsAre(2, 3))));
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
    EXPECT_THAT(usage_error<PlacementError>([&] { const MemoryOnNode nowhere{node}; }),
                AllOf(HasSubstr("no NUMA node"), HasSubstr("there are 0")));
  }
}

using Seen = std::vector<std::vector<int>>;  ///< which GPUs each local rank sees

/// GPUs "GPU-a0", "GPU-a1", ... at buses 10, 11, ...
GpuView view(int local_rank, const Seen& seen) {
  const auto uuid_of = [](int which) { return "GPU-a" + std::to_string(which); };
  GpuView result;
  result.local_rank = local_rank;
  result.host = "node7";
  for (const auto& gpus : seen) result.seen_by.push_back(mapped(gpus, uuid_of));
  for (const int which : seen[static_cast<std::size_t>(local_rank)]) {
    result.visible.push_back({.index = static_cast<int>(result.visible.size()),
                              .uuid = uuid_of(which),
                              .pci_bus_id = "0000:1" + std::to_string(which) + ":00.0",
                              .name = "made-up",
                              .major = 9,
                              .minor = 0,
                              .memory = Bytes{1}});
  }
  return result;
}

/// The choices of all ranks of a node.
std::vector<int> choices(const Seen& seen, const std::string& bind = "auto",
                         ShareGpu share = ShareGpu::no) {
  std::vector<int> result;
  for (int rank = 0; rank < static_cast<int>(seen.size()); ++rank) {
    result.push_back(choose_gpu(view(rank, seen), bind, share));
  }
  return result;
}

/// Returns why one rank alone is given no GPU.
std::string refused_alone(const GpuView& rank, const char* bind = "auto",
                          ShareGpu share = ShareGpu::no) {
  return usage_error(choose_gpu, rank, bind, share);
}

TEST(ChooseGpu, CountsByLocalRankOrTakesWhatTheSchedulerShowsOrFollowsABinding) {
  const Seen three(3, {0, 1, 2});
  for (const auto& [seen, bind, expected] :
       {std::tuple{Seen(4, {0, 1, 2, 3}), "auto", std::vector{0, 1, 2, 3}},
        {Seen(2, {3, 1, 2}), "auto", {0, 1}},
        {{{5}}, "auto", {0}},
        {{{2}, {0}, {1}}, "auto", {0, 0, 0}},
        // Two ranks that were given the same one are found when their choices are compared.
        {{{2}, {2}, {1}}, "auto", {0, 0, 0}},
        {three, "2,0,1", {2, 0, 1}},
        {three, "GPU-A1,0,GPU-a2", {1, 0, 2}},
        {three, "00000000:12:00.0,0000:10:00.0,11:00.0", {2, 0, 1}},
        {{{4, 2}, {2, 4}}, "GPU-a2,GPU-a4", {1, 1}}}) {
    EXPECT_EQ(choices(seen, bind), expected) << bind;
  }
}

TEST(ChooseGpu, SharesGpusWhereAskedTo) {
  for (const auto& [seen, expected] : {std::pair{Seen(3, {0, 1}), std::vector{0, 1, 0}},
                                       {{{0}, {0}, {0}}, {0, 0, 0}},
                                       {{{0, 1}, {2, 3}}, {0, 1}}}) {
    EXPECT_EQ(choices(seen, "auto", ShareGpu::yes), expected);
  }
}

TEST(ChooseGpu, RefusesFewerGpusThanRanksNeighboursThatSeeOthersAndBindingsThatDoNotFit) {
  const Seen two(2, {0, 1}), three(3, {0, 1});
  expect_words_of<std::pair<Seen, std::string>>(
      {{{three, "auto"}, {"node7", "3 ranks", "2 GPUs", "--share-gpu"}},
       {{{{0}, {0}}, "auto"}, {"node7", "2 ranks", "1 GPU:"}},
       {{{{0, 1}, {0}}, "auto"}, {"rank 0 sees 2", "rank 1 sees 1", "--gpu-bind"}},
       {{{{0, 1}, {2, 3}}, "auto"}, {"rank 0 sees 2", "rank 1 sees 2"}},
       {{{{0, 1}, {1, 0}}, "auto"}, {"different GPUs"}},
       {{{{0}, {}}, "auto"}, {"rank 1 sees 0"}},
       {{two, "0"}, {"--gpu-bind '0'", "1 GPU,", "2 ranks on node7"}},
       {{two, "0,1,0"}, {"names 3 GPUs"}},
       {{{{0}}, "0,0"}, {"1 rank on"}},
       {{two, "0,2"}, {"GPU '2'", "rank 1 on node7", "0 (GPU-a0, 0000:10:00.0)", "1 (GPU-a1"}},
       {{two, "0001:10:00.0,1"}, {"GPU '0001:10:00.0'", "local rank 0"}}},
      [](const auto& asked) {
        return usage_error(choices, asked.first, asked.second, ShareGpu::no);
      });
  for (const std::string name : {"", "auto", "00", "-1", "GPU-", "11:00", "11:00.8"}) {
    EXPECT_THAT(usage_error(choices, two, "0," + name, ShareGpu::no),
                HasSubstr("GPU '" + name + "' is not visible"));
  }
  // Every rank finds what is wrong.
  for (const int rank : {0, 1, 2}) EXPECT_NE(refused_alone(view(rank, three)), "");
  EXPECT_THAT(refused_alone(view(1, {{0, 1}, {0}})), HasSubstr("rank 0 sees 2"));
}

TEST(ChooseGpu, SaysWhatHidesAllGpus) {
  GpuView nothing = view(0, {{}});
  for (const ShareGpu share : {ShareGpu::no, ShareGpu::yes}) {
    EXPECT_THAT(refused_alone(nothing, "auto", share),
                AllOf(HasSubstr("local rank 0 on node7"), HasSubstr("--device host")));
  }
  nothing.visible_devices = "";
  EXPECT_THAT(refused_alone(nothing, "0"), HasSubstr("CUDA_VISIBLE_DEVICES is ''"));
  nothing.visible_devices = "9\x1b[31m";
  EXPECT_THAT(refused_alone(nothing), HasSubstr("'9\\x1b[31m'"));
}

TEST(SharedGpus, AreRefusedUnlessAskedFor) {
  const std::vector<GpuUse> apart{{.rank = 4, .pci_bus_id = "0000:0a:00.0"},
                                  {.rank = 5, .pci_bus_id = "0000:0b:00.0"}};
  EXPECT_FALSE(share_a_gpu(apart));
  EXPECT_NO_THROW(refuse_shared_gpus(apart, "node7", ShareGpu::no));
  std::vector<GpuUse> together = apart;
  together.push_back({.rank = 6, .pci_bus_id = "0000:0a:00.0"});
  EXPECT_TRUE(share_a_gpu(together));
  EXPECT_THAT(usage_error([&] { refuse_shared_gpus(together, "node7", ShareGpu::no); }),
              AllOf(HasSubstr("ranks 4 and 6 on node7"), HasSubstr("0000:0a:00.0"),
                    HasSubstr("--share-gpu")));
  EXPECT_NO_THROW(refuse_shared_gpus(together, "node7", ShareGpu::yes));
  EXPECT_FALSE(share_a_gpu({}));
}

TEST(Precisions, AreThoseOfTheChip) {
  using enum program::Precision;
  const std::vector old{f64, f32}, half{f64, f32, f16}, ampere{f64, f32, tf32, f16, bf16},
      newer{f64, f32, tf32, f16, bf16, fp8};
  EXPECT_EQ(precisions_of(5, 2), old);
  for (const int minor : {3, 9}) EXPECT_EQ(precisions_of(5, minor), half);
  for (const int minor : {0, 6}) EXPECT_EQ(precisions_of(8, minor), ampere);
  EXPECT_EQ(precisions_of(8, 9), newer);
  for (const int major : {9, 10, 12}) EXPECT_EQ(precisions_of(major, 0), newer);
}

TEST(LibraryProblem, IsADriverThatIsMissingOrOlderAndNcclWithoutSplit) {
  EXPECT_THAT(driver_problem(0, 13000),
              Optional(AllOf(HasSubstr("driver"), HasSubstr("--device host"))));
  EXPECT_THAT(driver_problem(12080, 13010),
              Optional(AllOf(HasSubstr("12.8"), HasSubstr("13.1"), HasSubstr("branch 580"))));
  EXPECT_THAT(driver_problem(11080, 12000), Optional(HasSubstr("branch 525")));
  EXPECT_EQ(driver_problem(13000, 13000), std::nullopt);
  EXPECT_EQ(driver_problem(13000, 13020), std::nullopt);
  EXPECT_EQ(driver_problem(14000, 13020), std::nullopt);
  EXPECT_EQ(nccl_problem(21800), std::nullopt);
  EXPECT_EQ(nccl_problem(22809), std::nullopt);
  EXPECT_THAT(nccl_problem(21705), Optional(AllOf(HasSubstr("2.17.5"), HasSubstr("2.18"))));
  EXPECT_THAT(nccl_problem(2708), Optional(HasSubstr("2.7.8")));
}

}  // namespace
}  // namespace isoscale::machine
