// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "preflight/job_facts.hpp"

/// Checks are rows of tables. A row has a rule that judges facts, its verdict, and its texts.
/// check_job() (rules.cpp) applies all rules and writes the results.
namespace isoscale::preflight {

// The following functions return a job's facts in the forms that rules need: GPUs, ports and ranks
// by node, environment variables, and the adapters near a GPU (job_view.cpp). The time of every
// function is linear in ranks and devices.

/// The host and device that a finding is about; "" as in CheckResult.
struct Place {
  std::string host{}, device{};
};

/// A GPU that the job uses. If ranks report the GPUs that they took, the job uses only these;
/// otherwise it is assumed to use all GPUs that NVML lists.
struct JobGpu {
  const CheckedNode* node = nullptr;
  const GpuFacts* gpu = nullptr;
  int index = 0;  ///< index in CheckedNode::gpus
  std::vector<const CheckedRank*> ranks;

  /// Returns the host, and the device as "GPU 3 (0000:5d:00.0)".
  [[nodiscard]] Place place() const;
};
/// Returns the GPUs of the job; none if it runs on the host.
[[nodiscard]] std::vector<JobGpu> job_gpus(const JobFacts& job);
/// Returns the reason why a source has no facts about the job's GPUs.
[[nodiscard]] std::string no_gpus(const JobFacts& job, std::string_view source = "NVML");

/// True if NVLink-C2C joins the GPU with its CPU (Grace). Its PCIe link then carries no relevant
/// traffic.
[[nodiscard]] bool is_joined_by_c2c(const GpuFacts& gpu);
/// Returns the name of a port: "mlx5_2 port 1".
[[nodiscard]] std::string port_text(const CheckedPort& port);
/// True if the port's state is ACTIVE.
[[nodiscard]] bool is_up(const CheckedPort& port);
[[nodiscard]] bool has_up_port(const CheckedNode& node);

/// Returns a number of bytes as text: "74.5 GiB".
[[nodiscard]] std::string bytes_text(double bytes);
/// Returns a rate in bit/s as text: "200 Gbit/s".
[[nodiscard]] std::string bit_rate_text(double rate);
/// Returns names as one text: "c1", "c1, c2 and c3" or "c1, c2 and 30 more".
[[nodiscard]] std::string listed(std::span<const std::string> names);

/// Returns the most common value, the first of several equally common ones; absent if there are no
/// values.
template <class T>
[[nodiscard]] std::optional<T> most_common(std::span<const T> values) {
  std::map<T, std::size_t> counts;
  for (const T& value : values) ++counts[value];
  std::optional<T> most;
  for (const T& value : values) {
    if (!most || counts[value] > counts[*most]) most = value;
  }
  return most;
}

struct NodeRanks {
  int node = 0;
  const CheckedNode* facts = nullptr;  ///< nullptr if nothing was collected
  std::vector<const CheckedRank*> ranks;

  [[nodiscard]] std::string host() const;
  /// True if the node is known to have an InfiniBand or RoCE port that is up.
  [[nodiscard]] bool has_network() const { return facts != nullptr && has_up_port(*facts); }
};
/// Returns the nodes that have ranks, by index.
[[nodiscard]] std::vector<NodeRanks> nodes_of_ranks(const JobFacts& job);

/// Returns the version of a piece of software, by its key in CheckedRank::versions.
[[nodiscard]] std::optional<std::string> version_of(const CheckedRank& rank,
                                                    const std::string& key);
/// Returns the value of an environment variable of a rank; nullopt = unset.
[[nodiscard]] std::optional<std::string> setting(const CheckedRank& rank, const std::string& name);
/// True if a variable's value is a number other than 0.
[[nodiscard]] bool is_switched_on(std::string_view value);
/// Splits a list at commas, and drops blanks and empty parts.
[[nodiscard]] std::vector<std::string> parts_of_list(std::string_view list);

/// True if the job has ranks on more than one node.
[[nodiscard]] bool has_several_nodes(const JobFacts& job);

/// Returns those of `variables` that are set on the first rank, with their values: "NCCL_ALGO=Ring,
/// NCCL_PROTO=LL".
[[nodiscard]] std::string settings_of_first(const JobFacts& job,
                                            const std::vector<std::string>& variables);

/// The effect of NCCL_IB_HCA on a port: the list excludes the port, allows it, or names its adapter
/// in full, which means that the port is expected to work.
enum class Naming : std::uint8_t { left_out, usable, named };
/// Returns the effect of a value of NCCL_IB_HCA on the port. As in NCCL, a leading "^" excludes the
/// listed names, "=" requires whole names (else names are prefixes), and "mlx5_0:1" names a port.
[[nodiscard]] Naming naming_of(std::string_view list, const CheckedPort& port);
/// Returns the entries of a value of NCCL_IB_HCA that match no port of the node.
[[nodiscard]] std::vector<std::string> unknown_adapters(std::string_view list,
                                                        const CheckedNode& node);

/// Returns the distance between a GPU and a port: 0 is nearest, see distance_name(). nullopt if it
/// is unknown.
[[nodiscard]] std::optional<std::size_t> distance_between(const GpuFacts& gpu,
                                                          const CheckedPort& port);
/// Returns the name of a distance, from near to far: "one switch", "several switches", "host
/// bridge", "NUMA node", "system".
[[nodiscard]] std::string_view distance_name(std::size_t distance);

struct Nearest {
  std::size_t distance = 0;               ///< as distance_between() returns it
  std::vector<const CheckedPort*> ports;  ///< all ports at this distance
};
/// Returns the ports nearest to a GPU among those of its node that are up; nullopt if none of them
/// has a known distance.
[[nodiscard]] std::optional<Nearest> nearest_ports(const GpuFacts& gpu, const CheckedNode& node);

// The following types and functions state rules and apply them (rules.cpp).

using Results = std::vector<CheckResult>;

/// The answer of a rule about one subject, such as a GPU.
struct Answer {
  enum class Fact : std::uint8_t { known, unknown, not_concerned };

  std::string wrong{};  ///< a clause that says what is wrong; "" = nothing is
  Fact fact = Fact::known;
  std::string_view cost{}, fix{};    ///< replace the rule's texts unless ""
  std::optional<Verdict> verdict{};  ///< replaces the rule's verdict
};
inline const Answer nothing_wrong{};
inline const Answer not_known{.fact = Answer::Fact::unknown};
/// The rule does not apply to the subject, which counts neither as known nor as unknown.
inline const Answer not_concerned{.fact = Answer::Fact::not_concerned};

/// Returns the answer that something is wrong; the clause says what is wrong.
template <class... Values>
[[nodiscard]] Answer wrong(fmt::format_string<Values...> clause, Values&&... values) {
  return {.wrong = fmt::format(clause, std::forward<Values>(values)...)};
}

/// The texts of the result of a rule that found nothing wrong.
struct Otherwise {
  std::string fine;     ///< if ok: what was compared
  std::string unknown;  ///< if not checked: why nothing could be compared
  std::string how;      ///< if not checked: how it could be compared
};

struct Rule;

/// Collects the findings of one rule. The results have no name; the caller sets it.
class Findings {
 public:
  explicit Findings(const Rule& rule) : rule_(rule) {}
  /// Counts a known or unknown fact, so that "ok" can say how many were unknown, and adds a result
  /// if something is wrong.
  void add(Place place, const Answer& answer);
  void add(const Answer& answer) { add({}, answer); }
  /// True if the fact is present. Each call counts one known or unknown fact.
  template <class T>
  [[nodiscard]] bool knows(const std::optional<T>& fact) {
    add(fact ? nothing_wrong : not_known);
    return fact.has_value();
  }
  /// Sets the texts for the case that nothing is known, unless the rule's row has them.
  void set_unknown(std::string_view unknown, std::string_view how) {
    if (otherwise.unknown.empty()) otherwise.unknown = unknown;
    if (otherwise.how.empty()) otherwise.how = how;
  }
  /// Returns the findings. If there are none, it returns one result: ok if any fact was known, else
  /// not checked.
  [[nodiscard]] Results results() &&;

  Otherwise otherwise;  ///< a rule may replace the texts of its row

 private:
  const Rule& rule_;
  Results found_;
  std::size_t known_ = 0, unknown_ = 0;
};

/// Judges the facts of a job. Rules that judge one subject at a time are made by the templates
/// below.
using Judge = void (*)(Findings& findings, const JobFacts& job);

/// The device on which a rule can be checked, and the reason why it is not checked on others.
struct Scope {
  std::string_view device{};  ///< "" = any
  std::string_view unknown{};
};
constexpr Scope on_gpus{"cuda", "the job runs on the host"};
constexpr Scope with_nccl{"cuda", "the job does not use NCCL"};
constexpr Scope with_blas{"host", "the job does not compute with BLAS"};

/// The advice for checks that lack facts which only NVML reports.
constexpr std::string_view how_on_gpus = "run with --device cuda where NVML answers";

/// A row of the tables of checks. It gives one result for each host and device where something is
/// wrong, or a single result if nothing is.
struct Rule {
  std::string_view name{};
  Judge judge = nullptr;
  Verdict verdict = Verdict::warning;  ///< verdict if something is wrong
  std::string_view cost{}, fix{};      ///< as in CheckResult
  // Texts for the result of a rule that found nothing wrong; see Otherwise. Texts that many rules
  // share or that depend on the job may be empty here; `judge` then sets them.
  std::string_view fine{}, unknown{}, how{};
  Scope scope{};
};

/// Judges every rank, and adds one finding for all ranks of a node that have the same answer. The
/// `device` of the finding names these ranks: "every rank" if they are all ranks of the node.
void judge_ranks(Findings& findings, const JobFacts& job,
                 const std::function<Answer(const CheckedRank&, const NodeRanks&)>& judge_one);

// Each of these templates makes a rule of a function that judges one subject: each_gpu and
// each_node call judge(subject), each_node_of_ranks judge(node, job), each_rank judge(rank, its
// node, job). Ranks of a node with the same answer give one result.
template <auto judge>
void each_gpu(Findings& findings, const JobFacts& job) {
  findings.set_unknown(no_gpus(job), how_on_gpus);
  for (const JobGpu& gpu : job_gpus(job)) findings.add(gpu.place(), judge(gpu));
}
template <auto judge>
void each_node(Findings& findings, const JobFacts& job) {
  for (const CheckedNode& node : job.nodes) findings.add({.host = node.host}, judge(node));
}
template <auto judge>
void each_node_of_ranks(Findings& findings, const JobFacts& job) {
  for (const NodeRanks& node : nodes_of_ranks(job)) {
    findings.add({.host = node.host()}, judge(node, job));
  }
}
template <auto judge>
void each_rank(Findings& findings, const JobFacts& job) {
  findings.set_unknown("no rank is known", "");
  judge_ranks(findings, job, [&](const CheckedRank& rank, const NodeRanks& node) {
    return judge(rank, node, job);
  });
}
/// Calls `judge` once with all GPUs of the job.
template <auto judge>
void all_gpus(Findings& findings, const JobFacts& job) {
  findings.set_unknown(no_gpus(job), how_on_gpus);
  judge(findings, job_gpus(job), job);
}

/// Returns the answer about a fact that is either true or false; `bad` is the wrong value.
[[nodiscard]] inline Answer flag(const std::optional<bool>& fact, bool bad,
                                 std::string_view wrong) {
  return fact ? Answer{.wrong = std::string{*fact == bad ? wrong : ""}} : not_known;
}

/// An environment variable that usually hurts performance if it has certain values.
struct BadSetting {
  std::string_view variable{};
  bool (*hurts)(std::string_view value, const NodeRanks& node, const CheckedRank& rank) = nullptr;
  std::string_view cost{}, fix{};  ///< "" = the rule's
};
/// Adds a finding for each variable whose value hurts performance, once for each node and value.
void find_bad_settings(Findings& findings, const JobFacts& job,
                       std::span<const BadSetting> settings);

/// A value that should equal the others of its kind.
struct Observed {
  Place place;
  std::optional<std::string> value;
  std::string kind{};  ///< values of one kind are compared
};
/// Adds a finding for each value that differs from the most common value of its kind (the first of
/// equally common ones): "driver 550.54.15, elsewhere 560.35.03". `difference` has the cost, fix
/// and verdict of these findings. Returns the first known value; "" if there is none.
std::string find_differences(Findings& findings, std::span<const Observed> observed,
                             std::string_view quantity, const Answer& difference = {});
/// Compares a fact, as text, among the GPUs of each model. Sets the text `fine` of the findings
/// unless it is already set. Returns the first known text, "" if there is none.
std::string compare_gpus(Findings& findings, std::span<const JobGpu> gpus,
                         std::string_view quantity,
                         std::optional<std::string> (*text)(const GpuFacts& gpu),
                         const Answer& difference = {});

// The rules by subject, each from the file rules_SUBJECT.cpp.
[[nodiscard]] std::span<const Rule> launch_rules();
[[nodiscard]] std::span<const Rule> likeness_rules();
[[nodiscard]] std::span<const Rule> gpu_rules();
[[nodiscard]] std::span<const Rule> link_rules();
[[nodiscard]] std::span<const Rule> adapter_rules();
[[nodiscard]] std::span<const Rule> node_rules();
[[nodiscard]] std::span<const Rule> environment_rules();
[[nodiscard]] std::span<const Rule> sniff_rules();

}  // namespace isoscale::preflight
