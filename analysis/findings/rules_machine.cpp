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

#include "analysis/findings/judges.hpp"
#include "analysis/labels.hpp"
#include "analysis/rank_facts.hpp"
#include "analysis/rows/datasheets.hpp"
#include "units/text.hpp"

/// Rules about the machine: what preflight, facts of ranks and pairs say.
namespace isoscale::analysis::judges {
namespace {

using preflight::CheckResult;

/// Warnings and allowed stops of these checks, in the order of the names.
std::vector<const CheckResult*> warnings_of(const results::RunData& run,
                                            std::span<const std::string_view> names) {
  std::vector<const CheckResult*> found;
  if (!run.preflight) return found;
  for (const std::string_view check : names) {
    for (const CheckResult& result : run.preflight->results) {
      const bool bad = result.verdict == preflight::Verdict::warning ||
                       result.verdict == preflight::Verdict::stop;
      if (result.name == check && bad) found.push_back(&result);
    }
  }
  return found;
}

std::string place_of(const CheckResult& result) {
  if (result.host.empty() || result.device.empty()) return result.host + result.device;
  return result.host + ", " + result.device;
}

Judgement from_checks(const std::vector<const CheckResult*>& found) {
  const CheckResult& first = *found.front();
  const std::string place = place_of(first);
  Judgement said{.next_step = first.fix};
  said.sentence = (place.empty() ? "" : place + ": ") + first.what;
  if (found.size() > 1) said.sentence += fmt::format(" (and {} more)", found.size() - 1);
  for (const CheckResult* const result : found) {
    const std::string of = place_of(*result);
    said.evidence.push_back({.what = "preflight " + result->name,
                             .unit = Unit::text,
                             .text = (of.empty() ? "" : of + ": ") + result->what});
  }
  if (!first.cost.empty()) {
    said.evidence.push_back({.what = "costs", .unit = Unit::text, .text = first.cost});
  }
  return said;
}

bool has_no_link(const results::RankFacts& facts) {
  const auto links = facts.number.find("gpu_nvlinks");
  const Datasheet* const sheet = datasheet_of(facts);
  return links != facts.number.end() && links->second == 0 && sheet != nullptr && sheet->link;
}

/// Nodes with several GPUs of a model that has NVLink, and none of its links active; one host each.
std::vector<std::string> unlinked_hosts(const results::RunData& run) {
  std::map<int, std::vector<const results::RankFacts*>> of_node;
  for (const results::RankFacts& facts : run.rank_facts) of_node[facts.node].push_back(&facts);
  std::vector<std::string> hosts;
  for (const auto& [node, ranks] : of_node) {
    const auto unlinked =
        std::ranges::count_if(ranks, [](const auto* facts) { return has_no_link(*facts); });
    if (unlinked >= 2) hosts.push_back(ranks.front()->host);
  }
  return hosts;
}

/// Pairs of the class, and the medians of it and of its NVLink like.
struct Classes {
  const ClassReport* pcie = nullptr;
  const ClassReport* nvlink = nullptr;
};

Classes classes_of(const RunReport& run) {
  Classes classes;
  for (const PointReport& point : run.benches) {
    if (!point.bench) continue;
    for (const ClassReport& at : point.bench->classes) {
      if (at.name == "same node, PCIe") classes.pcie = &at;
      if (at.name == "same node, NVLink") classes.nvlink = &at;
    }
  }
  return classes;
}

/// Whether any GPU of the run has NVLinks, by count or by model.
bool expects_nvlink(const results::RunData& run) {
  return std::ranges::any_of(run.rank_facts, [](const results::RankFacts& facts) {
    const auto links = facts.number.find("gpu_nvlinks");
    const Datasheet* const sheet = datasheet_of(facts);
    return (links != facts.number.end() && links->second > 0) || (sheet != nullptr && sheet->link);
  });
}

void add_bandwidth(const char* what, const ClassReport& at, std::vector<Evidence>& evidence) {
  if (!at.bandwidth) return;
  evidence.push_back({.what = what, .unit = Unit::bandwidth, .value = *at.bandwidth});
}

}  // namespace

Said slow_pair(const RunReport& run, const Rule& /*rule*/) {
  const SlowPair* worst = nullptr;
  const results::PointData* of_worst = nullptr;
  std::size_t count = 0;
  for (const PointReport& point : run.benches) {
    // Pairs that share cores are slow for that reason.
    if (!point.bench || has_label(point.labels, "oversubscribed")) continue;
    count += point.bench->slow.size();
    for (const SlowPair& pair : point.bench->slow) {
      if (worst != nullptr && pair.share() >= worst->share()) continue;
      worst = &pair;
      of_worst = point.data;
    }
  }
  if (worst == nullptr) return std::nullopt;
  Judgement said{.size = 1 - worst->share()};
  said.sentence = fmt::format("ranks {} and {} reach {} of what others on their kind of link do{}",
                              world_rank(*of_worst, worst->src), world_rank(*of_worst, worst->dst),
                              units::format_percent(worst->share()),
                              count > 1 ? fmt::format(" ({} more pairs)", count - 1) : "");
  const Unit unit = worst->quantity == "latency" ? Unit::seconds : Unit::bandwidth;
  said.evidence = {{.what = std::string{worst->quantity}, .unit = unit, .value = worst->value},
                   {.what = "typical", .unit = unit, .value = worst->typical},
                   {.what = "from", .unit = Unit::text, .text = worst->from},
                   {.what = "to", .unit = Unit::text, .text = worst->to},
                   {.what = "link", .unit = Unit::text, .text = worst->link_class}};
  said.next_step = "isoscale check names ports, cables and links that are below their like";
  return said;
}

Said pcie_for_nvlink(const RunReport& run, const Rule& /*rule*/) {
  static constexpr std::array<std::string_view, 2> checks{"nvlink-pairs", "nvlinks"};
  const std::string next = "nvidia-smi topo -m and nvlink -s; choose GPUs that NVLink joins";
  Judgement said{.next_step = next};
  const Classes classes = classes_of(run);
  if (classes.pcie != nullptr && expects_nvlink(*run.data)) {
    said.sentence = fmt::format("PCIe joins {} pairs of GPUs inside nodes though they have NVLink",
                                classes.pcie->pairs);
    add_bandwidth("over PCIe", *classes.pcie, said.evidence);
    if (classes.nvlink != nullptr) add_bandwidth("over NVLink", *classes.nvlink, said.evidence);
    return said;
  }
  if (const auto hosts = unlinked_hosts(*run.data); !hosts.empty()) {
    said.sentence =
        fmt::format("no NVLink is active on {}{}, though the GPUs have NVLink",
                    hosts.front().empty() ? "a node" : hosts.front(),
                    hosts.size() > 1 ? fmt::format(" and {} more", hosts.size() - 1) : "");
    said.evidence = {{.what = "active NVLinks of a GPU", .unit = Unit::count, .value = 0}};
    return said;
  }
  const auto found = warnings_of(*run.data, checks);
  return found.empty() ? std::nullopt : std::optional{from_checks(found)};
}

Said far_numa(const RunReport& run, const Rule& /*rule*/) {
  static constexpr std::array<std::string_view, 3> checks{"gpu-cores", "gpu-nic", "numa-mask"};
  const auto found = warnings_of(*run.data, checks);
  return found.empty() ? std::nullopt : std::optional{from_checks(found)};
}

}  // namespace isoscale::analysis::judges
