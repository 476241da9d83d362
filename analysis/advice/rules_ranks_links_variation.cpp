// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/advice/rules.hpp"
#include "analysis/microbench/microbench_report.hpp"
#include "base/text.hpp"
#include "calibration/fit_calibration.hpp"
#include "results/records/point_facts.hpp"
#include "statistics/estimate.hpp"

/// Implements the rules about ranks, links and nodes, and about the variation of times.
namespace isoscale::analysis::advice {
namespace {

using results::CheckResult;

using Causes = std::vector<const efficiency::NamedCause*>;

Causes causes_of(const PointReport& point, std::string_view kind) {
  Causes found;
  for (const efficiency::NamedCause& cause : point.causes.named) {
    if (cause.kind == kind) found.push_back(&cause);
  }
  return found;
}

const efficiency::NamedCause* largest(const Causes& causes) {
  const auto found = std::ranges::max_element(causes, {}, &efficiency::NamedCause::size);
  return found == causes.end() ? nullptr : *found;
}

std::string and_more(std::size_t others, std::string_view noun) {
  if (others == 0) return "";
  return fmt::format(" ({} more {})", others, base::plural(others, noun));
}

/// Returns ranks as text: "rank 3 (node1)", "ranks 0, 1, 2 and 5 more".
std::string ranks_of(const PointSubject& subject, const std::vector<int>& ranks) {
  constexpr std::size_t most = 3;
  if (ranks.size() == 1) return short_place(subject.run, *subject.point.data, ranks.front());
  std::vector<int> shown = world_ranks(*subject.point.data, ranks);
  std::ranges::sort(shown);
  return "ranks " + base::listed(shown, most);
}

/// Returns the share of the step that would be saved if a slow activity took its normal time. At
/// present the activity takes `factor` times its normal time, which is `share` of the step. Absent
/// if the share is not known, or if the factor is not above 1.
std::optional<double> avoidable(std::optional<double> share, double factor) {
  if (!share || !(factor > 1)) return std::nullopt;
  return std::clamp(*share * (1 - 1 / factor), 0.0, 1.0);
}

/// Returns the compute time of a rank as a share of its step. A rank that was not traced gets the
/// average over the traced ranks. Absent without a breakdown.
std::optional<double> compute_share(const breakdown::BreakdownResult& breakdown, int rank) {
  if (!breakdown.mean) return std::nullopt;
  for (std::size_t i = 0; i < breakdown.ranks.size(); ++i) {
    const breakdown::Breakdown& own = breakdown.of_rank[i];
    if (breakdown.ranks[i] == rank && own.step > 0) return own.compute / own.step;
  }
  return breakdown.mean->compute / breakdown.mean->step;
}

bool is_slow(const PointReport& point, int rank) {
  return std::ranges::any_of(
      causes_of(point, "slow rank"),
      [&](const efficiency::NamedCause* cause) { return cause->ranks.front() == rank; });
}

/// Returns a finding with those results of the named preflight checks that are warnings or worse,
/// in the order of the names; absent if there are none. A result worse than a warning stops the run
/// unless the user allows it.
Said from_checks(const results::RunData& run, std::span<const std::string_view> names) {
  if (!run.preflight) return std::nullopt;
  std::vector<const CheckResult*> found;
  for (const std::string_view check : names) {
    for (const CheckResult& result : run.preflight->results) {
      const bool is_bad = result.verdict >= results::Verdict::warning;
      if (result.name == check && is_bad) found.push_back(&result);
    }
  }
  if (found.empty()) return std::nullopt;
  const auto text_of = [](const CheckResult& result) {
    std::vector<std::string> place{result.host, result.device};
    std::erase(place, "");
    return (place.empty() ? "" : base::listed(place) + ": ") + result.what;
  };
  const CheckResult& first = *found.front();
  Finding said{.sentence = text_of(first), .next_step = first.fix};
  if (found.size() > 1) said.sentence += fmt::format(" (and {} more)", found.size() - 1);
  for (const CheckResult* const result : found) {
    said.add("preflight " + result->name, text_of(*result));
  }
  if (!first.cost.empty()) said.add("costs", first.cost);
  return said;
}

/// True if a rank's GPU is of a type that has NVLink, by its datasheet.
bool is_made_for_nvlink(const results::RankFacts& facts) {
  const microbench::Datasheet* const sheet = microbench::datasheet_of(facts);
  return sheet != nullptr && sheet->link;
}

/// Returns the hosts of nodes where two or more GPUs are of a type with NVLink but have none
/// active.
std::vector<std::string> unlinked_hosts(const results::RunData& run) {
  std::map<int, std::vector<const results::RankFacts*>> of_node;
  for (const results::RankFacts& facts : run.rank_facts) of_node[facts.node].push_back(&facts);
  std::vector<std::string> hosts;
  for (const auto& [node, ranks] : of_node) {
    const auto unlinked = std::ranges::count_if(ranks, [](const results::RankFacts* facts) {
      return number_of(*facts, "gpu_nvlinks") == 0 && is_made_for_nvlink(*facts);
    });
    if (unlinked >= 2) hosts.push_back(ranks.front()->host);
  }
  return hosts;
}

/// Returns the results for the pairs of ranks joined by links of the class `name`, such as "same
/// node, PCIe"; null if there are no such pairs.
const microbench::ClassReport* class_of(const RunReport& run, std::string_view name) {
  const microbench::ClassReport* found = nullptr;
  for (const PointReport& point : run.benches) {
    if (!point.bench) continue;
    for (const microbench::ClassReport& at : point.bench->classes) {
      if (at.name == name) found = &at;
    }
  }
  return found;
}

/// True if any GPU of the run has NVLink, by its recorded number of links or by its datasheet.
bool expects_nvlink(const results::RunData& run) {
  return std::ranges::any_of(run.rank_facts, [](const results::RankFacts& facts) {
    return number_of(facts, "gpu_nvlinks").value_or(0) > 0 || is_made_for_nvlink(facts);
  });
}

Said slow_rank(const PointSubject& subject, const Rule& /*rule*/) {
  const Causes slow = causes_of(subject.point, "slow rank");
  const efficiency::NamedCause* const worst = largest(slow);
  if (worst == nullptr) return std::nullopt;
  Finding said{.severity = avoidable(compute_share(subject.point.breakdown, worst->ranks.front()),
                                     worst->size),
               .size = avoidable(1, worst->size)};
  said.sentence =
      fmt::format("{} is slow: its GEMMs take {:.2f} times as long as those of others{}",
                  ranks_of(subject, worst->ranks), worst->size, and_more(slow.size() - 1, "rank"));
  said.add("GEMM time", worst->size, Unit::factor);
  for (const efficiency::NamedCause* const cause : slow) said.add("cause", cause->text);
  said.next_step =
      "check its clocks, temperature and other processes; compare ranks: isoscale check";
  return said;
}

Said slow_link(const PointSubject& subject, const Rule& /*rule*/) {
  const Causes slow = causes_of(subject.point, "slow link");
  const efficiency::NamedCause* const worst = largest(slow);
  if (worst == nullptr) return std::nullopt;
  const auto& mean = subject.point.breakdown.mean;
  const auto share = mean ? std::optional{mean->transfer / mean->step} : std::nullopt;
  Finding said{.severity = avoidable(share, worst->size), .size = avoidable(1, worst->size)};
  // If all slow links have ranks in common, the last named cause is about these ranks.
  const efficiency::NamedCause& shared = *slow.back();
  const bool has_shared = shared.text.starts_with("slow links share");
  said.sentence = fmt::format("the link among {} takes {:.2f} times as long per byte as others{}",
                              ranks_of(subject, worst->ranks), worst->size,
                              and_more(slow.size() - (has_shared ? 2 : 1), "link"));
  said.add("time per byte", worst->size, Unit::factor);
  for (const efficiency::NamedCause* const cause : slow) said.add("cause", cause->text);
  said.next_step = has_shared
                       ? "check adapter, cable and port of " + ranks_of(subject, shared.ranks)
                       : "measure pairs: isoscale run --workload p2p; check ports: isoscale check";
  return said;
}

Said imbalance(const PointSubject& subject, const Rule& rule) {
  const efficiency::NamedCause* cause = largest(causes_of(subject.point, "imbalance"));
  const bool divided = cause != nullptr;
  if (!divided) cause = largest(causes_of(subject.point, "waiting"));
  if (cause == nullptr || !(cause->size > rule.limit("waiting"))) return std::nullopt;
  // If a slow rank explains this waiting, the rule about slow ranks reports it already.
  if (!cause->ranks.empty() && is_slow(subject.point, cause->ranks.front())) return std::nullopt;
  const std::string whom =
      cause->ranks.empty() ? std::string{} : ", mostly for " + ranks_of(subject, cause->ranks);
  Finding said{.severity = cause->size};
  said.sentence = fmt::format("{} of the step is waiting for late ranks{}{}", percent(cause->size),
                              whom, divided ? "" : "; it may be chance");
  said.add("waiting", cause->size);
  said.add("cause", cause->text);
  said.next_step = divided ? "compare ranks: breakdown_of_rank in isoscale report --format json"
                           : "trace more steps with a longer --max-time";
  return said;
}

Said noise(const PointSubject& subject, const Rule& rule) {
  const efficiency::NamedCause* const cause = largest(causes_of(subject.point, "noise"));
  if (cause == nullptr || !(cause->size > rule.limit("waiting"))) return std::nullopt;
  Finding said{.severity = cause->size};
  said.sentence = fmt::format("{} of the step is waiting for ranks that are occasionally late",
                              percent(cause->size));
  said.add("waiting", cause->size);
  for (const std::string& sentence : subject.point.flags.sentences) {
    said.add("steps", sentence);
  }
  said.next_step = "keep other jobs off the nodes (srun --exclusive); leave a core to the system";
  return said;
}

Said above_ceiling(const PointSubject& subject, const Rule& rule) {
  const auto mfu = subject.point.mfu;
  const auto* const ceiling =
      calibration::ceiling_of(subject.calibration, subject.point.data->dtype);
  if (!mfu || ceiling == nullptr || !(*mfu > rule.limit("MFU"))) return std::nullopt;
  return Finding{
      .size = *mfu - 1,
      .sentence = fmt::format(
          "MFU is {}, above 100%: GEMMs ran faster than any that this run measured alone",
          percent(*mfu)),
      .evidence = {{.what = "MFU", .value = *mfu},
                   {.what = "ceiling", .unit = Unit::flop_rate, .value = ceiling->rate}},
      .next_step = "add the model's own GEMMs to the run: --workload gemm --set shapes=model"};
}

Said wide_interval(const PointSubject& subject, const Rule& rule) {
  const auto& time = subject.point.step_time;
  const auto half = time ? statistics::relative_half_width(*time) : std::nullopt;
  // If there are several launches, the rule launch-spread judges their spread instead.
  if (!half || subject.launch_spread || !(*half > rule.limit("half width"))) {
    return std::nullopt;
  }
  Finding said{.size = *half};
  said.sentence = fmt::format(
      "the step time is only known to ±{}: smaller differences mean nothing", percent(*half));
  said.add("half width of the 95% interval", *half);
  said.add("median", time->median, Unit::seconds);
  said.add("steps", static_cast<double>(subject.point.steps), Unit::count);
  for (const std::string& sentence : subject.point.flags.sentences) {
    said.add("steps", sentence);
  }
  said.next_step = "measure longer (--max-time 60s) and without other jobs (srun --exclusive)";
  return said;
}

Said launch_spread(const PointSubject& subject, const Rule& rule) {
  const auto& spread = subject.launch_spread;
  const auto& time = subject.point.step_time;
  if (!spread || !time || !(*spread > rule.limit("spread"))) return std::nullopt;
  Finding said{.size = *spread};
  said.sentence = fmt::format("launches differ by {} of the step: compare over several launches",
                              percent(*spread));
  said.add("spread", *spread);
  said.add("fastest", time->minimum, Unit::seconds);
  said.add("slowest", time->maximum, Unit::seconds);
  said.add("launches", static_cast<double>(time->samples), Unit::count);
  said.next_step = "measure more launches; see where each ran: isoscale report, one file at a time";
  return said;
}

Said slow_pair(const RunReport& run, const Rule& /*rule*/) {
  const microbench::SlowPair* worst = nullptr;
  const results::PointData* of_worst = nullptr;
  std::size_t count = 0;
  for (const PointReport& point : run.benches) {
    // Pairs of ranks that share cores are slow for that reason, so they are not judged.
    if (!point.bench || results::has_label(point.labels, "oversubscribed")) continue;
    count += point.bench->slow.size();
    for (const microbench::SlowPair& pair : point.bench->slow) {
      if (worst != nullptr && pair.share() >= worst->share()) continue;
      worst = &pair;
      of_worst = point.data;
    }
  }
  if (worst == nullptr) return std::nullopt;
  Finding said{.size = 1 - worst->share()};
  said.sentence = fmt::format(
      "the link between ranks {} and {} reaches {} of what similar ones do{}",
      world_rank(*of_worst, worst->src), world_rank(*of_worst, worst->dst), percent(worst->share()),
      count > 1 ? fmt::format(" ({} more pairs)", count - 1) : "");
  const Unit unit = worst->quantity == "latency" ? Unit::seconds : Unit::bandwidth;
  said.add(std::string{worst->quantity}, worst->value, unit);
  said.add("typical", worst->typical, unit);
  said.add("from", worst->from);
  said.add("to", worst->to);
  said.add("link", worst->link_class);
  said.next_step =
      "run isoscale check: it lists ports, cables and links that are slower than similar ones";
  return said;
}

Said pcie_for_nvlink(const RunReport& run, const Rule& /*rule*/) {
  static constexpr std::array<std::string_view, 2> checks{"nvlink-pairs", "nvlinks"};
  Finding said{.next_step = "see nvidia-smi topo -m and nvlink -s; choose GPUs joined by NVLink"};
  const microbench::ClassReport* const pcie = class_of(run, "same node, PCIe");
  if (pcie != nullptr && expects_nvlink(*run.data)) {
    said.sentence = fmt::format(
        "PCIe connects {} pairs of GPUs inside nodes, though they have NVLink", pcie->pairs);
    const auto add = [&said](const char* what, const microbench::ClassReport* links) {
      if (links != nullptr && links->bandwidth) said.add(what, *links->bandwidth, Unit::bandwidth);
    };
    add("over PCIe", pcie);
    add("over NVLink", class_of(run, "same node, NVLink"));
    return said;
  }
  if (const auto hosts = unlinked_hosts(*run.data); !hosts.empty()) {
    said.sentence =
        fmt::format("no NVLink is active on {}{}, though the GPUs have NVLink",
                    hosts.front().empty() ? "a node" : hosts.front(),
                    hosts.size() > 1 ? fmt::format(" and {} more", hosts.size() - 1) : "");
    said.add("active NVLinks of a GPU", 0, Unit::count);
    return said;
  }
  return from_checks(*run.data, checks);
}

Said far_numa(const RunReport& run, const Rule& /*rule*/) {
  static constexpr std::array<std::string_view, 3> checks{"gpu-cores", "gpu-nic", "numa-mask"};
  return from_checks(*run.data, checks);
}

constexpr Rule machine_table[] = {
    {.name = "slow-rank",
     .source = "docs/breakdown.md",
     .scope = Scope::faults,
     .concern = Concern::hardware,
     .judge_point = slow_rank},
    {.name = "slow-link",
     .source = "docs/breakdown.md",
     .scope = Scope::faults,
     .concern = Concern::hardware,
     .judge_point = slow_link},
    {.name = "imbalance",
     .source = "POP CoE metrics: efficiencies above 0.8 are acceptable",
     .thresholds = {{{"waiting", 0.05}}},
     .scope = Scope::faults,
     .judge_point = imbalance},
    {.name = "noise",
     .source = "Petrini, Kerbyson, Pakin, SC03; docs/breakdown.md",
     .thresholds = {{{"waiting", 0.05}}},
     .scope = Scope::faults,
     .judge_point = noise},
    {.name = "above-ceiling",
     .source = "docs/micro-benchmarks.md",
     .thresholds = {{{"MFU", 1.0}}},
     .concern = Concern::measurement,
     .judge_point = above_ceiling},
    {.name = "wide-interval",
     .source = "Hoefler, Belli, SC15; docs/statistics.md",
     .thresholds = {{{"half width", 0.05}}},
     .concern = Concern::measurement,
     .judge_point = wide_interval},
    {.name = "launch-spread",
     .source = "docs/launches.md: launches of one program differed by 3.9%",
     .thresholds = {{{"spread", 0.05}}},
     .concern = Concern::measurement,
     .judge_point = launch_spread},
    {.name = "slow-pair",
     .source = "docs/micro-benchmarks.md",
     .concern = Concern::hardware,
     .judge_run = slow_pair},
    {.name = "pcie-for-nvlink",
     .source = "NVML, datasheets, preflight (docs/preflight.md)",
     .concern = Concern::hardware,
     .judge_run = pcie_for_nvlink},
    {.name = "far-numa", .source = "preflight (docs/preflight.md)", .judge_run = far_numa},
};

}  // namespace

std::span<const Rule> machine_rules() { return machine_table; }

}  // namespace isoscale::analysis::advice
