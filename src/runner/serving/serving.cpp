// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/serving/serving.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "comm/clock_offset.hpp"
#include "comm/errors.hpp"
#include "comm/message_queue.hpp"
#include "program/check.hpp"
#include "results/run_data.hpp"
#include "runner/measure/gather_point.hpp"
#include "runner/watch/progress.hpp"
#include "workloads/serve/serve.hpp"
#include "workloads/serve/trials.hpp"

namespace isoscale::runner::serve {
namespace {

using results::PointStatus;
using results::RowData;
using workloads::serve::Outcome;
using workloads::serve::Quantiles;
using workloads::serve::RateSearch;
using workloads::serve::ReplicaUse;
using workloads::serve::Setting;
using workloads::serve::Summary;

constexpr double no_rate = 0;           // is broadcast if there are no more trials
constexpr double least_patience = 60;   // seconds without an answer, before a trial fails
constexpr double patient_batches = 50;  // or the time of so many batches, if that is longer
constexpr std::uint64_t least_requests = 20;
constexpr double trial_share = 0.2;  // of the point's time, if several rates are tried

/// The result of the trial of one rate.
struct TrialResult {
  double rate = 0;  ///< offered, requests a second
  std::vector<Outcome> outcomes{};
  Summary summary{};
  bool is_saturated = false;
};

/// The part of a point that is the same for all its trials.
struct Offer {
  const workloads::Request& request;
  const Setting& setting;
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

void put_setting(RowData& row, const Offer& offer) {
  const Setting& setting = offer.setting;
  const workloads::OptionReader options{workloads::serve::option_table(), offer.request.options};
  row.text["dtype"] = std::string{workloads::name(offer.request.precision)};
  row.text["arrivals"] = options.text("arrivals");
  row.text["dispatch"] = options.text("dispatch");
  row.text["lengths"] = options.text("lengths");
  row.number["prompt"] = static_cast<double>(setting.prompt);
  row.number["output"] = static_cast<double>(setting.output);
  row.number["max_batch"] = static_cast<double>(setting.max_batch);
  row.number["burst"] = static_cast<double>(setting.burst);
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
  row.number["replicas"] = replicas;
  row.number["utilisation"] = sum / replicas;
  row.number["utilisation_min"] = least->utilisation;
  row.number["utilisation_max"] = most->utilisation;
  row.number["imbalance"] = summary.imbalance;
  if (batches > 0) row.number["requests_per_batch"] = requests / batches;
}

/// Returns the row of a rate: offered and achieved rate, latencies, utilisation and backlog. A
/// value that is undefined is absent from the row.
RowData rate_row(const Offer& offer, const TrialResult& trial) {
  const Summary& summary = trial.summary;
  RowData row = row_of("rate", trial);
  put_setting(row, offer);
  row.text["saturated"] = trial.is_saturated ? "yes" : "no";
  row.number["requests"] = static_cast<double>(trial.outcomes.size());
  row.number["offered"] = summary.offered;
  row.number["achieved"] = summary.achieved;
  double tokens = 0;
  for (const Outcome& one : trial.outcomes) tokens += static_cast<double>(one.tokens);
  if (summary.time > 0) row.number["tokens_per_second"] = tokens / summary.time;
  put(row, "latency", summary.latency);
  put(row, "ttft", summary.ttft);
  put(row, "tpot", summary.tpot);
  put(row, "queueing", summary.queueing);
  row.number["duration_seconds"] = summary.time;
  row.number["backlog"] = static_cast<double>(summary.backlog);
  row.number["backlog_growth"] = summary.backlog_growth;
  put_use(row, summary);
  for (const Outcome& one : trial.outcomes) row.call_times.push_back(one.latency());
  return row;
}

/// Returns one row for each replica: its requests, batches and busy time.
std::vector<RowData> replica_rows(const TrialResult& trial) {
  std::vector<RowData> rows;
  for (const ReplicaUse& use : trial.summary.replicas) {
    RowData row = row_of("replica", trial);
    row.number["replica"] = static_cast<double>(rows.size());
    row.number["requests"] = static_cast<double>(use.requests);
    row.number["batches"] = static_cast<double>(use.batches);
    row.number["busy_seconds"] = use.busy;
    row.number["utilisation"] = use.utilisation;
    rows.push_back(std::move(row));
  }
  return rows;
}

constexpr std::size_t most_request_rows = 1000;

/// Returns one row for each request of a trial, but for at most `most_request_rows` requests.
std::vector<RowData> request_rows(const TrialResult& trial) {
  std::vector<RowData> rows;
  for (const Outcome& one : trial.outcomes) {
    if (rows.size() == most_request_rows) break;
    RowData row = row_of("request", trial);
    row.number["request"] = static_cast<double>(rows.size());
    row.number["replica"] = static_cast<double>(one.replica);
    row.number["batch"] = static_cast<double>(one.batch);
    row.number["filled"] = static_cast<double>(one.filled);
    row.number["tokens"] = static_cast<double>(one.tokens);
    row.number["arrival_seconds"] = one.arrival;
    row.number["dispatched_seconds"] = one.dispatched;
    row.number["start_seconds"] = one.started;
    row.number["first_seconds"] = one.first;
    row.number["end_seconds"] = one.finished;
    rows.push_back(std::move(row));
  }
  return rows;
}

/// Measures a serving point on one rank of the point or its copies.
class ServeRun {
 public:
  ServeRun(const PlannedPoint& point, const PointContext& context, const BenchPlace& place,
           results::PointData& data)
      : point_(point),
        context_(context),
        place_(place),
        data_(data),
        setting_(workloads::serve::setting_of(point.request)),
        at_(mesh::coordinates(point.request.mesh, place.sub_world.rank())),
        replica_(place.sub_world.split(at_.dp, place.sub_world.rank())),
        point_mail_(place.sub_world),
        replica_mail_(replica_),
        begin_(comm::now()) {}

  void run() {
    if (const std::string reason = why_not(); !reason.empty()) return skip(reason);
    if (!prepared()) return;
    session_->play(program::Section::setup, executor::Trace::off);
    if (place_.share == Share::in_point)
      collect_session(place_.sub_world, session_->facts(), data_);
    context_.progress.doing("warming up");
    measure_pace();
    const std::string problem = run_trials();
    if (!agreed(problem)) {
      // Messages may still be on their way.
      point_mail_.abandon();
      replica_mail_.abandon();
      data_.rows.clear();
      return;
    }
    conclude();
  }

 private:
  [[nodiscard]] std::string why_not() const {
    if (context_.executor.describe().shared_device) {
      return "ranks share a GPU: verified, not measured";
    }
    // The result is the same on all ranks, since all processes use the same MPI library.
    if (comm::threads_may_talk()) return "";
    return "the thread that dispatches needs MPI_THREAD_MULTIPLE, which this MPI library does not "
           "give";
  }

  void skip(const std::string& reason) {
    data_.status = PointStatus::skipped;
    data_.reason = reason;
  }

  /// Collective: fails the point if any rank of the point or its copies has a problem. Returns true
  /// if there is none, the same on all ranks.
  bool agreed(const std::string& problem) {
    const comm::Vote vote = comm::all_ok(place_.active, problem);
    if (vote.ok) return true;
    data_.status = PointStatus::failed;
    data_.reason = vote.why;
    return false;
  }

  bool prepared() {
    context_.progress.doing("preparing");
    std::string problem;
    program::ProgramSet set;
    try {
      set = workloads::serve::replica_programs(point_.request);
      if (place_.sub_world.rank() == 0) program::check(set);
    } catch (const std::exception& error) {
      problem = comm::problem_of(error);
    }
    if (!agreed(problem)) return false;
    try {
      session_ = context_.executor.prepare(set, replica_, {.faults = place_.faults});
    } catch (const std::exception& error) {
      problem = comm::problem_of(error);
    }
    return agreed(problem);
  }

  /// Returns this rank's part in its replica. On rank 0 it has no activity: the dispatcher there
  /// notes idle times, since only it knows whether requests are due.
  [[nodiscard]] ReplicaPart part() const {
    return {.session = *session_,
            .point = point_mail_,
            .replica = replica_mail_,
            .ranks = replica_.size(),
            .sizes = workloads::serve::sizes_of(setting_.max_batch),
            .output = setting_.output,
            .activity = place_.sub_world.rank() == 0 ? nullptr : context_.progress.activity()};
  }

  /// Collective: measures the pace of the slowest rank, and stores it on all ranks.
  void measure_pace() {
    Paces mine = warm_up(part());
    std::array<double, 4> slowest{mine.one.prefill, mine.one.token, mine.full.prefill,
                                  mine.full.token};
    place_.sub_world.all_max(slowest);
    pace_ = {.one = {slowest[0], slowest[1]}, .full = {slowest[2], slowest[3]}};
  }

  /// Returns the seconds that it takes to answer with so many tokens.
  [[nodiscard]] static double seconds_of(const Pace& pace, double tokens) {
    return pace.prefill + (tokens - 1) * pace.token;
  }

  /// Returns the number of requests per second that all replicas together answer if their batches
  /// are full.
  [[nodiscard]] double capacity() const {
    const double batch = seconds_of(pace_.full, setting_.mean_tokens());
    return static_cast<double>(setting_.max_batch) * point_.request.mesh.dp / std::max(batch, 1e-9);
  }

  /// Returns the trial of a rate. The result is the same on all ranks, since it depends only on
  /// values that all ranks have.
  [[nodiscard]] Trial trial_at(double rate) const {
    const double share = setting_.rate ? 1 : trial_share;
    const double seconds = share * context_.effort.max_time.value();
    const double fit = seconds * std::min(rate, capacity());
    const std::uint64_t count =
        std::min(setting_.requests,
                 std::max(least_requests, static_cast<std::uint64_t>(std::min(fit, 1e9))));
    Trial trial{.arrivals = workloads::serve::arrival_times(
                    {.process = setting_.process, .rate = rate, .burst = setting_.burst}, count,
                    point_.request.seed),
                .tokens = workloads::serve::answer_lengths(setting_.lengths, setting_.output, count,
                                                           point_.request.seed),
                .policy = setting_.policy};
    for (const std::uint64_t tokens : trial.tokens) {
      trial.work.push_back(seconds_of(pace_.one, static_cast<double>(tokens)));
    }
    for (int replica = 0; replica < point_.request.mesh.dp; ++replica) {
      trial.leader_of_replica.push_back(mesh::rank_at(point_.request.mesh, {.dp = replica}));
    }
    const double batch = seconds_of(pace_.full, static_cast<double>(setting_.output));
    trial.patience = units::Seconds{std::max(least_patience, patient_batches * batch)};
    return trial;
  }

  /// Collective over the point: runs trials at the rates that rank 0 chooses. Returns this rank's
  /// problem; "" if there is none.
  std::string run_trials() {
    std::optional<RateSearch> search;
    if (!setting_.rate) search.emplace(capacity() / 2);
    while (true) {
      const double rate = broadcast(next_rate(search));
      if (rate <= no_rate) return "";
      context_.progress.doing(fmt::format("{:.4g} requests/s", rate));
      const Trial trial = trial_at(rate);
      Served served;
      const std::string problem = play(trial, served);
      const comm::Vote vote = comm::all_ok(place_.sub_world, problem);
      if (!vote.ok) return problem.empty() ? "a rank of the point has failed" : problem;
      if (place_.sub_world.rank() == 0) note(rate, std::move(served), search);
    }
  }

  [[nodiscard]] double next_rate(const std::optional<RateSearch>& search) const {
    if (!search) return results_.empty() ? *setting_.rate : no_rate;
    const bool is_late = comm::now() - begin_ > units::to_nanoseconds(context_.effort.max_time);
    if (is_late && !results_.empty()) return no_rate;
    return search->next().value_or(no_rate);
  }

  [[nodiscard]] double broadcast(double value) const {
    return std::bit_cast<double>(place_.sub_world.broadcast(std::bit_cast<std::int64_t>(value)));
  }

  /// Collective over the point: runs one trial, and fills `served` on rank 0. Returns this rank's
  /// problem; "" if there is none.
  std::string play(const Trial& trial, Served& served) {
    const comm::ClockSync clocks{place_.sub_world};
    place_.sub_world.barrier();
    const ReplicaPart mine = part();
    // Leaders and followers wait longer than the dispatcher, so that the dispatcher notices a
    // problem first and tells the others.
    const units::Seconds patience{trial.arrivals.back() + 2 * trial.patience.value()};
    std::string problem;
    if (place_.sub_world.rank() == 0) {
      std::jthread thread{[&](const std::stop_token& stop) {
        try {
          served = dispatch(point_mail_, trial, stop, context_.progress.activity());
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
    if (!comm::all_ok(place_.sub_world, problem).ok) return problem;
    align(clocks.fit(), trial, served);
    return "";
  }

  /// Collective over the point: converts the leaders' times to the dispatcher's clock.
  void align(const comm::ClockFit& mine, const Trial& trial, Served& served) const {
    static_assert(std::is_trivially_copyable_v<comm::ClockFit>);
    const auto parts = place_.sub_world.gather(std::as_bytes(std::span{&mine, 1}));
    if (place_.sub_world.rank() != 0) return;
    for (std::size_t i = 0; i < served.outcomes.size(); ++i) {
      Outcome& outcome = served.outcomes[i];
      const int leader = trial.leader_of_replica[outcome.replica];
      comm::ClockFit fit;
      std::memcpy(&fit, parts[static_cast<std::size_t>(leader)].data(), sizeof fit);
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
    result.summary = workloads::serve::summarise(result.outcomes,
                                                 static_cast<std::size_t>(point_.request.mesh.dp));
    result.is_saturated =
        workloads::serve::is_saturated(result.summary, result.outcomes, setting_.slo);
    if (search) {
      search->tell(result.is_saturated ? RateSearch::Outcome::saturated
                                       : RateSearch::Outcome::sustained);
    }
    answered_ += result.outcomes.size();
    results_.push_back(std::move(result));
  }

  /// Returns the index of the trial whose requests are kept: the one with the highest rate that was
  /// sustained, else the last one.
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
    if (place_.share != Share::in_point || place_.sub_world.rank() != 0) return;
    const std::size_t kept = kept_trial();
    for (std::size_t i = 0; i < results_.size(); ++i) {
      RowData row = rate_row({point_.request, setting_}, results_[i]);
      const bool is_highest = !setting_.rate && i == kept && !results_[i].is_saturated;
      if (is_highest) row.text["highest"] = "yes";
      data_.rows.push_back(std::move(row));
      for (RowData& use : replica_rows(results_[i])) data_.rows.push_back(std::move(use));
    }
    for (RowData& row : request_rows(results_[kept])) data_.rows.push_back(std::move(row));
    data_.verification += fmt::format("; {} requests, each answered exactly once", answered_);
  }

  const PlannedPoint& point_;
  const PointContext& context_;
  const BenchPlace& place_;
  results::PointData& data_;
  Setting setting_;
  mesh::Coordinates at_;
  comm::Communicator replica_;  ///< ranks of this rank's replica, the leader first
  comm::MessageQueue point_mail_, replica_mail_;
  units::Nanoseconds begin_;
  std::unique_ptr<executor::Session> session_;
  Paces pace_;
  std::vector<TrialResult> results_;  ///< on rank 0 of the point
  std::size_t answered_ = 0;
};

}  // namespace

void run_serve(const PlannedPoint& point, const PointContext& context, const BenchPlace& place,
               results::PointData& data) {
  ServeRun{point, context, place, data}.run();
}

}  // namespace isoscale::runner::serve
