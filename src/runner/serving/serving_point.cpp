// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/serving/serving_point.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <optional>
#include <span>
#include <thread>

#include "comm/clock_offset.hpp"
#include "program/check_races_and_matching.hpp"
#include "results/records/run_data.hpp"
#include "runner/measure/gather_point_and_sample_devices.hpp"
#include "workloads/serve/serve.hpp"

namespace isoscale::runner::serving {
namespace {

using results::PointStatus;
using results::RowData;
using workloads::serve::Outcome;
using workloads::serve::Quantiles;
using workloads::serve::RateSearch;
using workloads::serve::ReplicaUse;
using workloads::serve::Setting;
using workloads::serve::Summary;

constexpr double no_rate = 0;  // broadcast in place of a rate when there are no more trials
// A trial fails if no answer comes within the longer of two times: least_patience seconds, and the
// time of patient_batches batches.
constexpr double least_patience = 60;
constexpr double patient_batches = 50;
// A trial has at least this many requests, unless the user asks for fewer.
constexpr std::uint64_t least_requests = 20;
// If several rates are tried, a trial gets this share of the point's time.
constexpr double trial_share = 0.2;

/// The result of a trial, in which requests were sent at one rate.
struct TrialResult {
  double rate = 0;  ///< requests per second that were sent (the offered rate)
  std::vector<Outcome> outcomes{};
  Summary summary{};
  bool is_saturated = false;
};

void put(RowData& row, const std::string& key, std::optional<double> value) {
  if (value) row.number[key] = *value;
}

void put(RowData& row, const std::string& key, const Quantiles& quantiles) {
  put(row, key + "_median_seconds", quantiles.median);
  put(row, key + "_p90_seconds", quantiles.p90);
  put(row, key + "_p99_seconds", quantiles.p99);
  put(row, key + "_max_seconds", quantiles.max);
}

RowData row_of(const char* part, const TrialResult& trial) {
  RowData row;
  row.text = {{"op", "serve"}, {"part", part}};
  row.number = {{"rate", trial.rate}};
  return row;
}

template <class Number>
void put_all(RowData& row, std::initializer_list<std::pair<const char*, Number>> numbers) {
  for (const auto& [key, number] : numbers) row.number[key] = static_cast<double>(number);
}

void put_setting(RowData& row, const workloads::Request& request, const Setting& setting) {
  row.text["dtype"] = std::string{program::name(request.precision)};
  for (const char* const key : {"arrivals", "dispatch", "lengths"}) {
    row.text[key] = option_text(workloads::serve::option_table(), request.options, key);
  }
  put_all<std::uint64_t>(row, {{"prompt", setting.prompt},
                               {"output", setting.output},
                               {"max_batch", setting.max_batch},
                               {"burst", setting.burst}});
  put(row, "slo_seconds", setting.slo);
}

void put_use(RowData& row, const Summary& summary) {
  double sum = 0, batches = 0, requests = 0;
  for (const ReplicaUse& use : summary.replicas) {
    sum += use.utilisation;
    batches += static_cast<double>(use.batches);
    requests += static_cast<double>(use.requests);
  }
  const auto replicas = static_cast<double>(summary.replicas.size());
  const auto [least, most] =
      std::ranges::minmax_element(summary.replicas, {}, &ReplicaUse::utilisation);
  put_all<double>(row, {{"replicas", replicas},
                        {"utilisation", sum / replicas},
                        {"utilisation_min", least->utilisation},
                        {"utilisation_max", most->utilisation},
                        {"imbalance", summary.imbalance}});
  if (batches > 0) row.number["requests_per_batch"] = requests / batches;
}

/// Returns the row of a trial with its offered and achieved rate, latencies, utilisation and
/// backlog. Values that are undefined are left out of the row.
RowData rate_row(const workloads::Request& request, const Setting& setting,
                 const TrialResult& trial) {
  const Summary& summary = trial.summary;
  RowData row = row_of("rate", trial);
  put_setting(row, request, setting);
  row.text["saturated"] = trial.is_saturated ? "yes" : "no";
  double tokens = 0;
  for (const Outcome& one : trial.outcomes) tokens += static_cast<double>(one.tokens);
  put_all<double>(row, {{"requests", static_cast<double>(trial.outcomes.size())},
                        {"offered", summary.offered},
                        {"achieved", summary.achieved},
                        {"duration_seconds", summary.time},
                        {"backlog", static_cast<double>(summary.backlog)},
                        {"backlog_growth", summary.backlog_growth}});
  if (summary.time > 0) row.number["tokens_per_second"] = tokens / summary.time;
  put(row, "latency", summary.latency);
  put(row, "ttft", summary.ttft);
  put(row, "tpot", summary.tpot);
  put(row, "queueing", summary.queueing);
  put_use(row, summary);
  for (const Outcome& one : trial.outcomes) row.call_times.push_back(one.latency());
  return row;
}

/// Returns a row for each replica, with its requests, its batches and its busy time.
std::vector<RowData> replica_rows(const TrialResult& trial) {
  std::vector<RowData> rows;
  for (const ReplicaUse& use : trial.summary.replicas) {
    RowData row = row_of("replica", trial);
    put_all<double>(row, {{"replica", static_cast<double>(rows.size())},
                          {"requests", static_cast<double>(use.requests)},
                          {"batches", static_cast<double>(use.batches)},
                          {"busy_seconds", use.busy},
                          {"utilisation", use.utilisation}});
    rows.push_back(std::move(row));
  }
  return rows;
}

constexpr std::size_t most_request_rows = 1000;

/// Returns a row for each of the first `most_request_rows` requests of a trial.
std::vector<RowData> request_rows(const TrialResult& trial) {
  std::vector<RowData> rows;
  for (const Outcome& one : trial.outcomes) {
    if (rows.size() == most_request_rows) break;
    RowData row = row_of("request", trial);
    put_all<std::uint64_t>(row, {{"request", rows.size()},
                                 {"replica", one.replica},
                                 {"batch", one.batch},
                                 {"filled", one.filled},
                                 {"tokens", one.tokens}});
    put_all<double>(row, {{"arrival_seconds", one.arrival},
                          {"dispatched_seconds", one.dispatched},
                          {"start_seconds", one.started},
                          {"first_seconds", one.first},
                          {"end_seconds", one.finished}});
    rows.push_back(std::move(row));
  }
  return rows;
}

/// Measures a point that serves requests, on one rank of the point or of a copy of it.
class ServeRun {
 public:
  explicit ServeRun(const measure::MeasuredPoint& point)
      : point_(point),
        request_(point.planned.request),
        data_(point.data),
        setting_(workloads::serve::setting_of(request_)),
        at_(mesh::coordinates(request_.mesh, point.sub_world.rank())),
        replica_(point.sub_world.split(at_.dp, point.sub_world.rank())),
        point_mail_(point.sub_world),
        replica_mail_(replica_),
        begin_(comm::now()) {}

  void run() {
    if (const std::string reason = why_not(); !reason.empty()) {
      return measure::end_as(PointStatus::skipped, reason, data_);
    }
    if (!prepare()) return;
    session_->play({.section = program::Section::setup});
    if (point_.in_point()) measure::collect_session(point_.sub_world, session_->facts(), data_);
    point_.context.progress.doing("warming up");
    measure_pace();
    const std::string problem = run_trials();
    if (!point_.agreed(problem)) {
      // Messages may still be under way, so the queues must not be freed.
      point_mail_.abandon();
      replica_mail_.abandon();
      data_.rows.clear();
      return;
    }
    conclude();
  }

 private:
  [[nodiscard]] std::string why_not() const {
    if (point_.context.executor.describe().shared_device) {
      return measure::shared_gpu_reason;
    }
    // All ranks return the same result, since they all use the same MPI library.
    if (comm::threads_may_talk()) return "";
    return "the thread that dispatches needs MPI_THREAD_MULTIPLE, which this MPI library does not "
           "give";
  }

  bool prepare() {
    point_.context.progress.doing("preparing");
    program::ProgramSet set;
    const std::string problem = comm::problem_in([&] {
      set = workloads::serve::replica_programs(request_);
      if (point_.leads()) program::check(set);
    });
    if (!point_.agreed(problem)) return false;
    auto [session, unsupported] = point_.prepare(set, replica_);
    if (!unsupported.empty()) measure::end_as(PointStatus::skipped, unsupported, data_);
    session_ = std::move(session);
    return session_ != nullptr;
  }

  /// Returns this rank's input for serving in its replica. On rank 0, `activity` is null: the
  /// dispatcher on that rank notes idle times, since only the dispatcher knows if requests are due.
  [[nodiscard]] ReplicaPart part() const {
    return {.session = *session_,
            .point = point_mail_,
            .replica = replica_mail_,
            .ranks = replica_.size(),
            .sizes = workloads::serve::sizes_of(setting_.max_batch),
            .output = setting_.output,
            .activity = point_.leads() ? nullptr : point_.context.progress.activity()};
  }

  /// Collective: measures how long batches take on the slowest rank; all ranks learn it.
  void measure_pace() {
    Paces mine = warm_up(part());
    std::array<double, 4> slowest{mine.one.prefill, mine.one.token, mine.full.prefill,
                                  mine.full.token};
    point_.sub_world.all_max(slowest);
    pace_ = {.one = {slowest[0], slowest[1]}, .full = {slowest[2], slowest[3]}};
  }

  /// Returns the seconds of a batch whose longest answer has `tokens` tokens.
  [[nodiscard]] static double seconds_of(const Pace& pace, double tokens) {
    return pace.prefill + (tokens - 1) * pace.token;
  }

  /// Returns how many requests per second all replicas together answer if every batch is full.
  [[nodiscard]] double capacity() const {
    const double batch = seconds_of(pace_.full, setting_.mean_tokens());
    return static_cast<double>(setting_.max_batch) * request_.mesh.dp / std::max(batch, 1e-9);
  }

  /// Returns a trial at this rate: its requests, the leaders of the replicas, and the longest wait.
  /// All ranks compute the same trial, since they only use values that are the same on all ranks.
  [[nodiscard]] Trial trial_at(double rate) const {
    const double share = setting_.rate ? 1 : trial_share;
    const double seconds = share * point_.context.effort.max_time.value();
    const double fit = seconds * std::min(rate, capacity());
    const std::uint64_t count =
        std::min(setting_.requests,
                 std::max(least_requests, static_cast<std::uint64_t>(std::min(fit, 1e9))));
    Trial trial{.arrivals = workloads::serve::arrival_times(
                    {.process = setting_.process, .rate = rate, .burst = setting_.burst}, count,
                    request_.seed),
                .tokens = workloads::serve::answer_lengths(setting_.lengths, setting_.output, count,
                                                           request_.seed),
                .policy = setting_.policy};
    for (const std::uint64_t tokens : trial.tokens) {
      trial.work.push_back(seconds_of(pace_.one, static_cast<double>(tokens)));
    }
    for (int replica = 0; replica < request_.mesh.dp; ++replica) {
      trial.leader_of_replica.push_back(mesh::rank_at(request_.mesh, {.dp = replica}));
    }
    const double batch = seconds_of(pace_.full, static_cast<double>(setting_.output));
    trial.patience = units::Seconds{std::max(least_patience, patient_batches * batch)};
    return trial;
  }

  /// Collective over the point: serves the requests of several trials, one after another, each at a
  /// rate that rank 0 chooses. Ends when rank 0 has no further rate, or when a rank fails. Returns
  /// "" if none failed; otherwise every rank returns its own problem or, if it has none, a text
  /// that says that another rank has failed.
  std::string run_trials() {
    std::optional<RateSearch> search;
    if (!setting_.rate) search.emplace(capacity() / 2);
    while (true) {
      const double rate = point_.sub_world.broadcast(next_rate(search));
      if (rate <= no_rate) return "";
      point_.context.progress.doing(fmt::format("{:.4g} requests/s", rate));
      const Trial trial = trial_at(rate);
      Served served;
      const std::string problem = play(trial, served);
      const comm::Vote vote = comm::all_ok(point_.sub_world, problem);
      if (!vote.ok) return problem.empty() ? "a rank of the point has failed" : problem;
      if (point_.leads()) note(rate, std::move(served), search);
    }
  }

  [[nodiscard]] double next_rate(const std::optional<RateSearch>& search) const {
    if (!search) return results_.empty() ? *setting_.rate : no_rate;
    const bool is_late =
        comm::now() - begin_ > units::to_nanoseconds(point_.context.effort.max_time);
    if (is_late && !results_.empty()) return no_rate;
    return search->next().value_or(no_rate);
  }

  /// Collective over the point: runs one trial. The results are stored in `served` on rank 0.
  /// Returns this rank's problem; "" if it has none.
  std::string play(const Trial& trial, Served& served) {
    const comm::ClockSync clocks{point_.sub_world};
    point_.sub_world.barrier();
    const ReplicaPart mine = part();
    // Leaders and followers wait longer for messages than the dispatcher, so that the dispatcher is
    // the first to notice a problem and can tell the others.
    const units::Seconds patience{trial.arrivals.back() + 2 * trial.patience.value()};
    std::string problem;
    if (point_.leads()) {
      std::jthread thread{[&](const std::stop_token& stop) {
        try {
          served = dispatch(point_mail_, trial, stop, point_.context.progress.activity());
        } catch (const std::exception& error) {
          served.problem = comm::problem_of(error);
        }
      }};
      problem = lead(mine, patience);
      thread.join();
      if (problem.empty()) problem = served.problem;
    } else {
      problem = replica_.rank() == 0 ? lead(mine, patience) : follow(mine, patience);
    }
    if (!comm::all_ok(point_.sub_world, problem).ok) return problem;
    align(clocks.fit(), trial, served);
    return "";
  }

  /// Collective over the point: converts the times in `served`, which are on the clocks of the
  /// leaders, to the dispatcher's clock. `mine` describes this rank's clock.
  void align(const comm::ClockFit& mine, const Trial& trial, Served& served) const {
    const auto fits = measure::gather_values(point_.sub_world, std::span{&mine, 1});
    if (!point_.leads()) return;
    for (std::size_t i = 0; i < served.outcomes.size(); ++i) {
      Outcome& outcome = served.outcomes[i];
      const int leader = trial.leader_of_replica[outcome.replica];
      const comm::ClockFit& fit = fits[static_cast<std::size_t>(leader)].front();
      const auto seconds = [&](units::Nanoseconds time) {
        return units::to_seconds(fit.to_rank_0(time) - served.begin).value();
      };
      outcome.started = seconds(served.played[i].started);
      outcome.first = seconds(served.played[i].first);
      outcome.finished = seconds(served.played[i].finished);
    }
  }

  void note(double rate, Served served, std::optional<RateSearch>& search) {
    TrialResult result{.rate = rate, .outcomes = std::move(served.outcomes)};
    result.summary =
        workloads::serve::summarise(result.outcomes, static_cast<std::size_t>(request_.mesh.dp));
    result.is_saturated =
        workloads::serve::is_saturated(result.summary, result.outcomes, setting_.slo);
    if (search) {
      search->tell(result.is_saturated ? RateSearch::Outcome::saturated
                                       : RateSearch::Outcome::sustained);
    }
    answered_ += result.outcomes.size();
    results_.push_back(std::move(result));
  }

  /// Returns the index of the trial of which single requests are stored: the one with the highest
  /// rate that the replicas sustained, else the last one.
  [[nodiscard]] std::size_t kept_trial() const {
    std::size_t kept = results_.size() - 1;
    double highest = 0;
    for (std::size_t i = 0; i < results_.size(); ++i) {
      if (results_[i].is_saturated || results_[i].rate <= highest) continue;
      highest = results_[i].rate;
      kept = i;
    }
    return kept;
  }

  void conclude() {
    session_.reset();
    if (!point_.in_point() || !point_.leads()) return;
    const std::size_t kept = kept_trial();
    for (std::size_t i = 0; i < results_.size(); ++i) {
      RowData row = rate_row(request_, setting_, results_[i]);
      const bool is_highest = !setting_.rate && i == kept && !results_[i].is_saturated;
      if (is_highest) row.text["highest"] = "yes";
      data_.rows.push_back(std::move(row));
      for (RowData& use : replica_rows(results_[i])) data_.rows.push_back(std::move(use));
    }
    for (RowData& row : request_rows(results_[kept])) data_.rows.push_back(std::move(row));
    data_.verification += fmt::format("; {} requests, each answered exactly once", answered_);
  }

  const measure::MeasuredPoint& point_;
  const workloads::Request& request_;
  results::PointData& data_;
  Setting setting_;
  mesh::Coordinates at_;
  comm::Communicator replica_;  ///< the ranks of this rank's replica, with the leader as rank 0
  comm::MessageQueue point_mail_, replica_mail_;
  units::Nanoseconds begin_;
  executor::SessionPtr session_;
  Paces pace_;
  std::vector<TrialResult> results_;  ///< one for each trial; on rank 0 of the point only
  std::size_t answered_ = 0;
};

}  // namespace

void run_serve(const measure::MeasuredPoint& point) { ServeRun{point}.run(); }

}  // namespace isoscale::runner::serving
