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

/// Defines the checks of preflight. Each check is a row of a table: a rule that judges facts, the
/// verdict if something is wrong, and texts for the user. check_job() (apply_rules.cpp) applies all
/// rules and makes the results.
namespace isoscale::preflight {

// The following functions return a job's facts in the forms that rules need: GPUs, ports and ranks
// by node, environment variables, and the adapters near a GPU (rule_helpers.cpp). The time that
// each function takes is linear in the number of ranks and devices.

/// The host and the device that a finding is about. Either is "" if the finding is not about a
/// particular one.
struct Place {
  std::string host{}, device{};
};

/// A GPU that the job uses. If ranks of a node report which GPUs they use, the job uses these. On
/// other nodes the job is assumed to use all GPUs that NVML lists.
struct JobGpu {
  const CheckedNode* node = nullptr;
  const GpuFacts* gpu = nullptr;
  int index = 0;  ///< index in CheckedNode::gpus
  std::vector<const CheckedRank*> ranks;

  /// Returns the GPU's host, and its name for the user: "GPU 3 (0000:5d:00.0)".
  [[nodiscard]] Place place() const;
};
/// Returns the GPUs of the job; none if it runs on the host.
[[nodiscard]] std::vector<JobGpu> job_gpus(const JobFacts& job);
/// Returns a text that says why `source` gives no facts about the job's GPUs.
[[nodiscard]] std::string no_gpus(const JobFacts& job, std::string_view source = "NVML");

/// True if NVLink-C2C joins the GPU with its CPU (Grace). The traffic between the two then does not
/// use the GPU's PCIe link.
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
[[nodiscard]] std::string listed(const std::vector<std::string>& names);

/// Returns the value that occurs most often, or the first such value in `values` if several occur
/// equally often; absent if there are no values.
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
/// Returns the nodes that have ranks, in the order of their indices.
[[nodiscard]] std::vector<NodeRanks> nodes_of_ranks(const JobFacts& job);

/// Returns the version of a rank's software, by its key in CheckedRank::versions.
[[nodiscard]] std::optional<std::string> version_of(const CheckedRank& rank,
                                                    const std::string& key);
/// Returns the value of an environment variable of a rank; nullopt = unset.
[[nodiscard]] std::optional<std::string> setting(const CheckedRank& rank, const std::string& name);
/// Splits a list at commas; blanks and empty parts are left out.
[[nodiscard]] std::vector<std::string> parts_of_list(std::string_view list);

/// The effect of NCCL_IB_HCA, NCCL's list of adapters, on a port. left_out: NCCL must not use the
/// port. usable: NCCL may use it. named: the list has the whole name of this adapter, with the
/// number of the port or, for port 1, without a number; so the port is expected to work.
enum class Naming : std::uint8_t { left_out, usable, named };
/// Returns the effect of a value of NCCL_IB_HCA on the port. As in NCCL, a leading "^" excludes the
/// names that follow, "=" says that they are whole names (otherwise they are prefixes), and
/// "mlx5_0:1" names a single port.
[[nodiscard]] Naming naming_of(std::string_view list, const CheckedPort& port);
/// Returns the entries of a value of NCCL_IB_HCA that match no port of the node. There are none if
/// the value excludes adapters, or if the ports of the node are unknown.
[[nodiscard]] std::vector<std::string> unknown_adapters(std::string_view list,
                                                        const CheckedNode& node);

// The following types and functions serve to write rules and to apply them (apply_rules.cpp).

using Results = std::vector<CheckResult>;

/// The answer of a rule about one GPU, rank or node.
struct Answer {
  enum class Fact : std::uint8_t { known, unknown, not_concerned };

  std::string wrong{};  ///< a clause that says what is wrong; "" = nothing is wrong
  Fact fact = Fact::known;
  std::string_view cost{}, fix{};    ///< texts for this answer; "" = those of the rule's row
  std::optional<Verdict> verdict{};  ///< verdict of this answer; absent = that of the rule's row
};
inline const Answer nothing_wrong{};
inline const Answer not_known{.fact = Answer::Fact::unknown};
/// The answer if a rule does not apply to a GPU, rank or node. It counts neither as known nor as
/// unknown.
inline const Answer not_concerned{.fact = Answer::Fact::not_concerned};

/// Returns the answer that something is wrong: `clause`, formatted with `values`, says what is
/// wrong.
template <class... Values>
[[nodiscard]] Answer wrong(fmt::format_string<Values...> clause, Values&&... values) {
  return {.wrong = fmt::format(clause, std::forward<Values>(values)...)};
}

/// The texts of a rule's result if nothing was found wrong: for the verdict ok, or for the verdict
/// "not checked", which means that no fact was known.
struct Otherwise {
  std::string fine;     ///< for ok: what was compared
  std::string unknown;  ///< for not checked: why nothing could be compared
  std::string how;      ///< for not checked: how it could be compared
};

struct Rule;

/// Collects the findings of one rule. They have no name; the caller of results() sets their name to
/// that of the check.
class Findings {
 public:
  explicit Findings(const Rule& rule);
  /// Counts a fact as known or unknown, since a result "ok" says how many facts were unknown. If
  /// the answer says that something is wrong, adds a finding.
  void add(Place place, const Answer& answer);
  void add(const Answer& answer) { add({}, answer); }
  /// True if the fact is present. The call also counts the fact as known or unknown.
  template <class T>
  [[nodiscard]] bool knows(const std::optional<T>& fact) {
    add(fact ? nothing_wrong : not_known);
    return fact.has_value();
  }
  /// Sets the texts that are shown if no fact is known, unless the rule's row in the table has its
  /// own.
  void set_unknown(std::string_view unknown, std::string_view how) {
    if (otherwise.unknown.empty()) otherwise.unknown = unknown;
    if (otherwise.how.empty()) otherwise.how = how;
  }
  /// Returns the findings. If nothing was found wrong, it returns one result: ok if any fact was
  /// known, else not checked.
  [[nodiscard]] Results results() &&;

  Otherwise otherwise;  ///< texts from the rule's row, which the rule may replace

 private:
  const Rule& rule_;
  Results found_;
  std::size_t known_ = 0, unknown_ = 0;
};

/// A rule: a function that judges the facts of a job and adds findings. The templates below make
/// such functions from ones that judge a single GPU, node or rank.
using Judge = void (*)(Findings& findings, const JobFacts& job);

/// The device on which a rule can be checked, and the text that says why it is not checked on other
/// devices.
struct Scope {
  std::string_view device{};  ///< "" = any
  std::string_view unknown{};
};
constexpr Scope on_gpus{"cuda", "the job runs on the host"};
constexpr Scope with_nccl{"cuda", "the job does not use NCCL"};
constexpr Scope with_blas{"host", "the job does not compute with BLAS"};

/// The advice for checks that could not be made because only NVML reports the facts they need.
constexpr std::string_view how_on_gpus = "run with --device cuda where NVML answers";

/// A row of the tables of checks. The check gives one result for each host and device on which
/// something is wrong, or a single result if nothing is wrong. check_job() then joins results that
/// differ only in the host.
struct Rule {
  std::string_view name{};
  Judge judge = nullptr;
  /// The verdict if something is wrong, unless the Answer has a verdict of its own.
  Verdict verdict = Verdict::warning;
  /// The effect on performance and the advice if something is wrong; see CheckResult.
  std::string_view cost{}, fix{};
  // The texts of the result if nothing is wrong; see Otherwise. A text may be empty here if many
  // rules share it or if it depends on the job; `judge` then sets it.
  std::string_view fine{}, unknown{}, how{};
  Scope scope{};
};

/// Judges every rank. All ranks of a node that have the same answer give one finding, whose
/// `device` names them: "every rank" if they are all ranks of the node.
void judge_ranks(Findings& findings, const JobFacts& job,
                 const std::function<Answer(const CheckedRank&, const NodeRanks&)>& judge_one);

// These templates make a rule (see Judge) of a function `judge` that judges a single GPU, node or
// rank. each_gpu and each_node call judge(gpu) and judge(node). each_rank calls judge(rank, its
// node, job), and ranks of a node with the same answer give one finding.
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
void each_rank(Findings& findings, const JobFacts& job) {
  findings.set_unknown("no rank is known", "");
  judge_ranks(findings, job, [&](const CheckedRank& rank, const NodeRanks& node) {
    return judge(rank, node, job);
  });
}
/// Makes a rule of a function that judges all GPUs of the job in one call.
template <auto judge>
void all_gpus(Findings& findings, const JobFacts& job) {
  findings.set_unknown(no_gpus(job), how_on_gpus);
  judge(findings, job_gpus(job), job);
}

/// Returns the answer about a fact that is true or false: `wrong` if it has the value `bad`.
[[nodiscard]] inline Answer flag(const std::optional<bool>& fact, bool bad,
                                 std::string_view wrong) {
  return fact ? Answer{.wrong = std::string{*fact == bad ? wrong : ""}} : not_known;
}

/// A value that should be the same on all GPUs or nodes.
struct Observed {
  Place place;
  std::optional<std::string> value;
  std::string kind{};  ///< only values of the same kind are compared with each other
};
/// Compares values. Adds a finding for each value that differs from the most common value of its
/// kind (the first of these in `observed` if several are equally common): "driver 550.54.15,
/// elsewhere 560.35.03". `quantity` is the name in this text ("driver"); `difference` has the cost,
/// fix and verdict of the findings. Returns the first known value; "" if no value is known.
std::string find_differences(Findings& findings, std::span<const Observed> observed,
                             std::string_view quantity, const Answer& difference = {});

// The functions below return the tables of checks. Each table is in a file of its own,
// rules_SUBJECT.cpp.
[[nodiscard]] std::span<const Rule> launch_rules();
[[nodiscard]] std::span<const Rule> likeness_rules();
[[nodiscard]] std::span<const Rule> gpu_rules();
[[nodiscard]] std::span<const Rule> link_rules();
[[nodiscard]] std::span<const Rule> adapter_rules();
[[nodiscard]] std::span<const Rule> node_rules();
[[nodiscard]] std::span<const Rule> environment_rules();
[[nodiscard]] std::span<const Rule> sniff_rules();

}  // namespace isoscale::preflight
