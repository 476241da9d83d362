// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/resume.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "machine/job_environment.hpp"
#include "results/records/launch_compatibility.hpp"
#include "runner/plan/time_estimates_and_schedule.hpp"
#include "runner/run_file.hpp"
#include "runner/run_points.hpp"
#include "runner/watch/stuck_ranks.hpp"

namespace isoscale::runner {
namespace {

using results::PointData;
using results::PointStatus;
using results::RankFacts;
using results::RunData;

void compare_text(std::string_view what, std::string_view earlier, std::string_view now,
                  std::vector<std::string>& found) {
  if (earlier != now) found.push_back(fmt::format("{} '{}', not '{}'", what, now, earlier));
}

/// Compares the facts of each rank that should be the same in both launches, and adds the
/// differences to `found`. For each kind of fact, only the first rank that differs is named.
void compare_ranks(const RunData& earlier, const RunData& now, std::vector<std::string>& found) {
  const std::size_t ranks = std::min(earlier.rank_facts.size(), now.rank_facts.size());
  for (const results::RankField& field : results::rank_fields) {
    if (field.when_resumed == results::WhenResumed::may_differ) continue;
    const std::string key{field.key};
    for (std::size_t r = 0; r < ranks; ++r) {
      const std::string before = text_of(earlier.rank_facts[r], key);
      const std::string after = text_of(now.rank_facts[r], key);
      if (before == after) continue;
      compare_text(fmt::format("{} of rank {}", key, r), before, after, found);
      break;
    }
  }
  const auto same_node = [](const RankFacts& a, const RankFacts& b) { return a.node == b.node; };
  if (!std::ranges::equal(earlier.rank_facts, now.rank_facts, same_node)) {
    found.emplace_back("ranks are dealt out over the nodes in another way");
  }
}

/// Returns the environment variables of a run that must have the same values when the run is
/// resumed, each with its value in quotes.
std::map<std::string, std::string> settings_of(const RunData& run) {
  const std::map<std::string, std::string> variables{run.environment.begin(),
                                                     run.environment.end()};
  const auto lookup = [&](std::string_view name) -> std::optional<std::string> {
    const auto at = variables.find(std::string{name});
    return at == variables.end() ? std::nullopt : std::optional{at->second};
  };
  std::map<std::string, std::string> settings;
  for (const auto& [name, value] : machine::recorded_settings(lookup)) {
    if (results::must_match_when_resumed(name)) settings[name] = fmt::format("'{}'", value);
  }
  return settings;
}

/// Returns the hosts on which a run had ranks, each once, in the order of ranks.
std::vector<std::string> hosts_of(const RunData& run) {
  std::vector<std::string> hosts;
  for (const RankFacts& rank : run.rank_facts) {
    if (std::ranges::find(hosts, rank.host) == hosts.end()) hosts.push_back(rank.host);
  }
  return hosts;
}

/// Returns the numbers of points, which begin with 1, as text: "1-3, 5" for 0, 1, 2 and 4.
std::string numbers_text(const std::set<int>& indices) {
  std::vector<int> numbers;
  for (const int index : indices) numbers.push_back(index + 1);
  return base::ranges_text(numbers);
}

/// Throws base::UsageError if `found` has differences; the message lists all of them.
void require_no_differences(const std::string& file, const std::vector<std::string>& found) {
  if (found.empty()) return;
  throw base::usage_error(
      "--resume {}: this launch is unlike the one that wrote the file: {}; start it as that one "
      "was, or begin a new run",
      file, fmt::join(found, "; "));
}

}  // namespace

Missing missing_points(const RunData& earlier, const plan::Plan& plan) {
  Missing missing;
  for (const plan::PlannedPoint& point : plan.points) missing.never_begun.insert(point.index);
  for (const PointData& point : earlier.points) {
    const bool had_no_time =
        point.status == PointStatus::skipped &&
        (point.reason == plan::budget_reason || point.reason == plan::signal_reason);
    if (had_no_time) continue;
    missing.never_begun.erase(point.index);
    if (point.status != PointStatus::failed) continue;
    (point.reason.starts_with(watch::hang_prefix) ? missing.hung : missing.failed)
        .insert(point.index);
  }
  return missing;
}

std::vector<std::string> differences(const RunData& earlier, const RunData& now) {
  std::vector<std::string> found;
  for (const results::LaunchField& field : results::launch_fields) {
    if (field.when_resumed == results::WhenResumed::may_differ) continue;
    compare_text(field.name, earlier.*field.text, now.*field.text, found);
  }
  for (const auto& [what, count] :
       {std::pair{"rank", &RunData::ranks}, {"node", &RunData::nodes}}) {
    if (earlier.*count == now.*count) continue;
    found.push_back(fmt::format("{}, not {}", base::counted(now.*count, what), earlier.*count));
  }
  if (earlier.ranks == now.ranks) compare_ranks(earlier, now, found);
  for (const results::UnlikeField& at :
       results::unlike_texts("", settings_of(now), settings_of(earlier), "unset")) {
    found.push_back(fmt::format("{} {}, not {}", at.name, at.here, at.there));
  }
  return found;
}

std::vector<std::string> differences(const RunData& earlier, const plan::Plan& plan) {
  std::vector<std::string> found;
  for (const PointData& point : earlier.points) {
    const auto index = static_cast<std::size_t>(point.index);
    if (point.index < 0 || index >= plan.points.size()) {
      found.push_back(fmt::format("point {} is missing here", point.index + 1));
      continue;
    }
    const plan::PlannedPoint& planned = plan.points[index];
    const bool same_work =
        point.workload == planned.workload->name && point.ranks == planned.ranks &&
        point.model == (plan::uses_model(planned) ? planned.request.model.name : "none");
    const bool same_mesh = point.status != PointStatus::ok || !planned.skip_reason.empty() ||
                           point.mesh == planned.request.mesh;
    if (same_work && same_mesh) continue;
    found.push_back(fmt::format("point {} is {} on {} ({}), not {} on {} ({})", point.index + 1,
                                planned.workload->name, base::counted(planned.ranks, "rank"),
                                mesh::to_string(planned.request.mesh), point.workload,
                                base::counted(point.ranks, "rank"), mesh::to_string(point.mesh)));
  }
  return found;
}

void require_ranks(const RunData& earlier, const std::string& file, int ranks) {
  if (earlier.ranks == ranks) return;
  require_no_differences(file,
                         {fmt::format("{}, not {}", base::counted(ranks, "rank"), earlier.ranks)});
}

std::string resumption_warning(const RunData& earlier, const RunData& now,
                               const std::set<int>& missing) {
  std::string text = fmt::format(
      "the run was resumed at {}: another launch than the rest measured {} {} since then, and "
      "launches differ",
      now.created, base::plural(missing.size(), "point"), numbers_text(missing));
  const auto before = hosts_of(earlier), after = hosts_of(now);
  if (before != after) {
    // There may be thousands of hosts, so only a few are named.
    constexpr std::size_t most_hosts = 4;
    text += fmt::format(", on {} instead of {}", base::listed(after, most_hosts),
                        base::listed(before, most_hosts));
  }
  return text;
}

/// Returns the data, with the status failed, of the point that hung and ended the earlier job;
/// absent if no point did, or if the run file already has it. The run file lacks it if rank 0 did
/// not answer during the hang: another rank then wrote the findings to a file beside the run file.
std::optional<PointData> Launch::unrecorded_hang() const {
  const auto hang = watch::read_hang_file(path_, earlier_->created);
  if (!hang || std::cmp_greater_equal(hang->point, plan_.points.size())) return std::nullopt;
  const bool is_there = std::ranges::any_of(
      earlier_->points, [&](const PointData& point) { return point.index == hang->point; });
  if (is_there) return std::nullopt;
  return as_failed(hang->point, std::string{watch::hang_prefix} + hang->sentence);
}

/// Opens the run that --resume continues, and determines which points to measure. Returns false if
/// the run is complete and there is no point to measure. Otherwise this launch goes on with the
/// run's header. If there are points to measure, a warning in the header says which they are.
/// Throws base::UsageError if this launch is unlike the earlier one.
bool Launch::reopen() {
  const std::string file = path_.string();
  require_no_differences(file, differences(*earlier_, header_));
  require_no_differences(file, differences(*earlier_, plan_));
  const std::optional<PointData> unrecorded = unrecorded_hang();
  Missing missing = missing_points(*earlier_, plan_);
  if (unrecorded) missing.hung.insert(missing.never_begun.extract(unrecorded->index));
  wanted_ = std::move(missing.never_begun);
  retried_ = std::move(missing.failed);
  (setting_.config.retry == settings::Retry::hung ? retried_ : left_hung_).merge(missing.hung);
  wanted_.insert(retried_.begin(), retried_.end());
  const bool speaks = setting_.config.verbosity == settings::Verbosity::normal;
  if (speaks && !left_hung_.empty()) {
    setting_.services.print(
        fmt::format("{} {} hung: not measured again, except with --retry hung\n",
                    base::plural(left_hung_.size(), "point"), numbers_text(left_hung_)));
  }
  if (wanted_.empty() && earlier_->complete) {
    if (speaks && left_hung_.empty()) {
      setting_.services.print(fmt::format(
          "{} is complete: it has all of its {} points, and nothing is left to measure\n", file,
          plan_.points.size()));
    }
    return false;
  }
  if (!wanted_.empty()) {
    earlier_->warnings.push_back(resumption_warning(*earlier_, header_, wanted_));
    for (const results::CheckResult& result : header_.preflight->results) {
      // The file keeps the preflight results of the first launch. So problems of this launch that
      // would have stopped it without --allow are recorded as warnings.
      if (result.allowed) earlier_->warnings.push_back("resumed with " + to_sentence(result));
    }
  }
  file_.emplace(results::RunWriter::resume(path_, *earlier_, wanted_), path_, *earlier_,
                fallback_of(setting_.config));
  if (unrecorded && left_hung_.contains(unrecorded->index)) file_->commit(*unrecorded);
  header_ = *std::exchange(earlier_, std::nullopt);
  std::vector<results::PointData> points = std::move(header_.points);
  header_.points.clear();
  measured_ = header_;
  std::erase_if(points, [&](const results::PointData& point) {
    return point.rows.empty() || wanted_.contains(point.index);
  });
  measured_.points = std::move(points);
  return true;
}

}  // namespace isoscale::runner
