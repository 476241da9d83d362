// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "preflight_samples.hpp"

namespace isoscale::preflight {
namespace {

using nlohmann::json;

TEST(Checks, HaveNamesOfTheirOwnAndAResultEach) {
  const std::vector<std::string> all = check_names();
  const std::set<std::string> names{all.begin(), all.end()};
  EXPECT_EQ(names.size(), all.size());
  for (const std::string& name : names) {
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz-"), std::string::npos);
  }
  for (const JobFacts& job : {bare_job("host", 2, 2), bare_job("cuda", 2, 2)}) {
    std::set<std::string> said;
    for (const CheckResult& result : check_job(job, {})) said.insert(result.name);
    EXPECT_EQ(said, names);
  }
}

/// Where nothing but ranks and nodes is known, only checks of just those may say more than that
/// they have not looked.
TEST(Checks, AreNeverOkWithoutASource) {
  const std::set<std::string> of_ranks_alone{"device",          "ranks-per-node",  "equal-settings",
                                             "nccl-transports", "nccl-files",      "nccl-debug",
                                             "nccl-choices",    "nccl-interfaces", "cuda-settings",
                                             "ucx-transports",  "thread-settings"};
  for (const JobFacts& job : {bare_job("host", 2, 4), bare_job("cuda", 2, 4), JobFacts{}}) {
    for (const CheckResult& result : check_job(job, {})) {
      if (!job.ranks.empty() && of_ranks_alone.contains(result.name)) continue;
      EXPECT_EQ(result.verdict, Verdict::not_checked) << job.device << ": " << to_sentence(result);
      EXPECT_FALSE(result.what.empty()) << result.name;
    }
  }
}

TEST(Checks, HaveCostAndFixWhereSomethingIsWrong) {
  std::set<std::string> wrong;
  for (const CheckResult& result : check_job(broken_job(), {})) {
    EXPECT_FALSE(result.what.empty()) << result.name;
    if (result.verdict < Verdict::warning) {
      EXPECT_TRUE(result.cost.empty()) << result.name;
      continue;
    }
    wrong.insert(result.name);
    EXPECT_FALSE(result.cost.empty()) << result.name;
    EXPECT_FALSE(result.fix.empty()) << result.name;
  }
  EXPECT_GT(wrong.size(), 30U);
}

TEST(CheckJob, MarksStopsThatAreAllowed) {
  JobFacts job = gpu_job(1, 2);
  job.ranks[1].gpu = job.ranks[0].gpu;
  EXPECT_TRUE(stops(check_job(job, {})));
  const std::vector<CheckResult> allowed = check_job(job, {"duplicate-gpu", "ecc"});
  EXPECT_FALSE(stops(allowed));
  EXPECT_THAT(allowed, Contains(testing::Field(&CheckResult::allowed, true)).Times(1));
  EXPECT_FALSE(results::stops({}));
  EXPECT_THAT([] { static_cast<void>(check_job(JobFacts{}, {"duplicate-gpus"})); },
              testing::ThrowsMessage<base::UsageError>(HasSubstr("'duplicate-gpu'")));
}

TEST(ToSentence, LeavesOutWhatIsEmpty) {
  EXPECT_EQ(to_sentence(CheckResult{.name = "rate", .what = "slow"}), "ok rate: slow");
  EXPECT_EQ(to_sentence(CheckResult{.name = "rate",
                                    .verdict = Verdict::stop,
                                    .host = "c3",
                                    .device = "port 1",
                                    .what = "slow",
                                    .cost = "half",
                                    .fix = "reseat",
                                    .allowed = true}),
            "stop rate (allowed): c3, port 1: slow; half; reseat");
}

/// People read what is said of a thousand ranks, so alike findings are one.
TEST(CheckJob, SaysLittleOfManyRanks) {
  JobFacts job = gpu_job(128, 8);
  on_job_gpus(&GpuFacts::ecc, false)(job);
  on_environment("NCCL_DEBUG", "INFO")(job);
  for (CheckedRank& rank : job.ranks) {
    for (int cpu = 0; cpu < 16; ++cpu) rank.cpus.push_back(cpu);
    rank.cores = rank.cpus;
    rank.versions = {{"isoscale", "1.0"}, {"build_type", "Debug"}};
  }
  std::size_t wrong = 0;
  for (const CheckResult& result : check_job(job, {})) {
    if (result.verdict < Verdict::warning) continue;
    ++wrong;
    EXPECT_EQ(result.host, "c0, c1 and 126 more") << to_sentence(result);
  }
  EXPECT_EQ(wrong, 8U + 2U);  // ECC of eight GPUs, the build and the variable
}

/// "warning ecc-errors|c0|GPU 1 (0000:02:00.0)|3" of each result that is a warning or a stop.
std::vector<std::string> wrong_in(const JobFacts& job) {
  std::vector<std::string> lines;
  for (const CheckResult& result : check_job(job, {})) {
    if (result.verdict < Verdict::warning) continue;
    lines.push_back(fmt::format("{} {}|{}|{}|{}", name(result.verdict), result.name, result.host,
                                result.device, numbers(result.what)));
  }
  return lines;
}

TEST(HealthyMachines, HaveNoFindingsButThoseOfTheirKind) {
  struct Case {
    JobFacts job;
    std::vector<std::string> wrong;
    std::vector<std::pair<const char*, const char*>> checks;  ///< and what each says
  };
  for (const Case& is : std::vector<Case>{
           {hgx_job(),
            {},
            {{"rail-map",
              "ok|||GPU0-mlx5_0 GPU1-mlx5_1 GPU2-mlx5_2 GPU3-mlx5_3 GPU4-mlx5_4 GPU5-mlx5_5 "
              "GPU6-mlx5_6 GPU7-mlx5_7 2"},
             // The adapters of storage are slower, and their second ports are not wired.
             {"port-state", "ok|||mlx5_11 1 mlx5_9 1"},
             {"port-rate", "ok|||200 Gbit/s 400 Gbit/s"},
             {"nvlinks", "ok|||18"},
             {"application-clock", "ok|||1.98 GHz 1.98 GHz"},
             {"cuda-settings", "ok|||CUDA_DEVICE_MAX_CONNECTIONS=1"}}},
           // Two GPUs have their only adapter on the other socket; to have no NVLink is no fault.
           {pcie_job(),
            {"warning gpu-nic|c0|GPU 2 (0000:03:00.0)|mlx5_0",
             "warning gpu-nic|c0|GPU 3 (0000:04:00.0)|mlx5_0"},
            {{"nvlink-pairs", "ok|||"},
             {"xid", "not checked|||"},
             {"neighbour-bandwidth", "not checked|||4"}}},
           {grace_hopper_job(),
            {},
            {{"peer-access", "not checked|||"}, {"gpu-pcie", "not checked|||"}, {"xid", "ok|||"}}},
           {gb200_job(),
            {},
            {{"nvlink-domain", "ok|||16 GPUs 1 NVLink"},
             {"gpu-pcie", "not checked|||"},
             {"rail-map", "ok|||GPU0-mlx5_0 GPU1-mlx5_1 GPU2-mlx5_2 GPU3-mlx5_3 4"}}},
           {cpu_job(), {}, {{"ecc", "not checked|||"}, {"port-rate", "ok|||25 Gbit/s 200 Gbit/s"}}},
       }) {
    SCOPED_TRACE(is.job.ranks[0].versions.at("device"));
    EXPECT_EQ(wrong_in(is.job), is.wrong);
    for (const auto& [check, says] : is.checks) EXPECT_EQ(said(is.job, check), says);
  }
  for (const CheckResult& result : check_job(hgx_job(), {})) {
    const bool is_of_the_host = result.name == "blas-threads" || result.name == "thread-settings";
    EXPECT_EQ(result.verdict, is_of_the_host ? Verdict::not_checked : Verdict::ok)
        << to_sentence(result);
  }
}

TEST(Faults, AreFoundAloneAndNothingElseIs) {
  for (const Fault& fault : faults()) {
    SCOPED_TRACE(::testing::PrintToString(fault.found));
    JobFacts job = hgx_job();
    fault.plant(job);
    EXPECT_THAT(wrong_in(job), UnorderedElementsAreArray(fault.found));
  }
}

/// Numbers are left out: some are of other ranks where another fault keeps ranks apart.
TEST(Faults, AreFoundTogether) {
  const auto without_numbers = [](const std::vector<std::string>& lines) {
    std::set<std::string> all;
    for (const std::string& line : lines) all.insert(line.substr(0, line.rfind('|')));
    return all;
  };
  std::set<std::string> expected;
  for (const Fault& fault : faults()) expected.merge(without_numbers(fault.found));
  EXPECT_EQ(without_numbers(wrong_in(broken_job())), expected);
}

/// The tables of docs/preflight.md have a line for each: "| `ecc` | ...".
TEST(PreflightDocs, NameEveryCheckAndNoOther) {
  std::ifstream file{ISOSCALE_DOCS "/preflight.md"};
  std::vector<std::string> documented;
  for (std::string line; std::getline(file, line);) {
    const std::string begin = "| `";
    if (!line.starts_with(begin)) continue;
    documented.push_back(line.substr(begin.size(), line.find('`', begin.size()) - begin.size()));
    // Name, what it looks at, source, verdicts, fix.
    EXPECT_EQ(std::ranges::count(line, '|'), 6) << line;
  }
  EXPECT_THAT(documented, UnorderedElementsAreArray(check_names()));
}

/// The fields that neither machine_of() reads nor tests of collect_node() compare as JSON, beside a
/// GPU and a node that lack most.
constexpr const char* told_job = R"({
  "device": "cuda", "share_gpu": true, "world": 4, "device_problem": "no driver",
  "device_reason": "a GPU was found", "sniff_skipped": "ranks share GPUs",
  "nodes": [{
    "node": 1, "host": "gpu-b", "numa_cpus": {"0": [0, 1], "1": [2, 3]},
    "governors": {"performance": 3, "powersave": 1}, "frequency_driver": "intel_pstate",
    "energy_preferences": {"balance_performance": 4}, "gpus_lost": 0,
    "gpus": [{
      "uuid": "GPU-5a2e91c4", "pci_bus_id": "0000:1b:00.0", "xids": [31, 94],
      "processes": [41200, 5000000000], "nvlinks_active": 16, "nvlinks_inactive": 2,
      "nvlink_peers": ["0000:07:00.0"], "fabric": "7c1f.32766"}, {}],
    "peers": [{"i": 1, "j": 2, "peer_access": false, "link": "system"}],
    "ports": [{"device": "mlx5_0", "port": 2, "rate": 4e11, "link_downed": 0}]},
    {"node": 2, "ports": []}],
  "ranks": [{
    "rank": 3, "node": 1, "local_rank": 1, "pid": 41203, "cpus": [0, 1, 112], "cores": [0, 1],
    "gpu": "GPU-5a2e91c4", "visible_gpus": [], "blas_threads": 16, "locked_memory_limit": 65536.0,
    "locked_memory_unlimited": true, "versions": {"nccl": "2.27.7"},
    "environment": {"NCCL_DEBUG": ""}, "missing_files": ["NCCL_TOPO_FILE"],
    "launcher": {"SLURM_NTASKS": 5000000000}, "gemm_rate": 6.8e14,
    "neighbours": [{"rank": 1, "bandwidth": 361000000000.5}, {"rank": 2}]}]})";

TEST(JobFactsJson, IsTheSameAfterReadingAndWriting) {
  const json before = json::parse(told_job);
  const json after = json::parse(to_json(job_facts_from_json(told_job)));
  EXPECT_EQ(after, before) << json::diff(before, after);
  EXPECT_EQ(to_json(JobFacts{}), "{}");
}

TEST(JobFactsJson, RefusesOtherTypes) {
  for (const char* const text :
       {"{", "[]", R"({"world": "4"})", R"({"world": 4.5})", R"({"world": 4294967296})",
        R"({"ranks": {}})", R"({"ranks": [4]})", R"({"ranks": [{"environment": 4}]})",
        R"({"ranks": [{"cpus": [0.5]}]})", R"({"ranks": [{"launcher": {"PMI_SIZE": 1.5}}]})",
        R"({"nodes": [{"governors": {"powersave": -4294967296}}]})", R"({"share_gpu": 1})",
        R"({"nodes": [{"memory": null}]})", R"({"ranks": [{"versions": {"mpi": 4}}]})"}) {
    EXPECT_THROW(static_cast<void>(job_facts_from_json(text)), base::Error) << text;
  }
}

}  // namespace
}  // namespace isoscale::preflight
