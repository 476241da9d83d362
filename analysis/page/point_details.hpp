// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/merge/join_launches.hpp"
#include "analysis/report.hpp"
#include "results/records/run_data.hpp"

/// Makes the JSON for the charts of a point: steps, ranks, timeline and devices, limited in size.
namespace isoscale::analysis::page {

/// Limits on the data for a point's charts; by default the most that a screen can show.
struct DetailLimits {
  std::size_t steps = 1000;   ///< entries of the series of steps
  std::size_t spans = 4000;   ///< spans of the timeline, over all lanes
  std::size_t lanes = 8;      ///< lanes of the timeline, unless there are more pipeline stages
  std::size_t stages = 32;    ///< most lanes, if a pipeline has more stages than `lanes`
  std::size_t columns = 200;  ///< columns of the rank map's cells
  std::size_t rows = 256;     ///< rows of the rank map
  std::size_t devices = 16;   ///< lines for each quantity, one line for each device
  std::size_t samples = 200;  ///< values of a device's line
};

/// Returns limits with which a point's charts take about `bytes`: three eighths for the timeline,
/// two for devices, and one each for the rank map's rows, its cells and the steps. A minimum of
/// entries of each chart, which takes up to 64 kB in all, always remains.
[[nodiscard]] DetailLimits limits_within(const results::PointData& point, std::size_t bytes);

/// Sentences that say how much of all points' data a page shows.
using PageNotes = std::vector<std::string>;

/// The number of items that a page shows, and the number that there are.
struct Shown {
  std::size_t shown = 0, all = 0;
};
/// Adds a note such as "3 of 20 `sentence`" to `notes` if not all items are shown.
void note_shown(const Shown& count, std::string_view sentence, PageNotes& notes);

/// A point whose charts a page shows. The pointers do not own their objects.
struct DetailedPoint {
  std::size_t run = 0;  ///< index in Report::runs
  const RunReport* report = nullptr;
  const PointReport* point = nullptr;
};

/// Returns the points whose charts a page shows, all with step times: the points of the curves of a
/// single run, or else the typical launch of each joined point (see merge::JoinedCurve).
[[nodiscard]] std::vector<DetailedPoint> detailed_points(const merge::Report& report);

/// Returns the data of a point's charts: run, point, ranks, steps, rank_map, timeline and devices.
[[nodiscard]] nlohmann::ordered_json point_details(const DetailedPoint& at,
                                                   const DetailLimits& limits);

/// The role of a step. Only `measured` steps count for the step time: `traced` ones recorded spans,
/// and a `dropped` one is the first of a block. The page's script uses the same numbers.
enum class StepKind : std::uint8_t { measured = 0, traced = 1, dropped = 2, warm_up = 3 };
[[nodiscard]] StepKind kind_of_step(const results::PointData& point, std::size_t step);

/// Returns the seconds of the slowest rank; absent if the time of a rank is missing or not above 0.
[[nodiscard]] std::optional<double> time_of_step(const results::PointData& point, std::size_t step);

/// Returns the step times of a point as JSON, in order. An entry stands for all steps of one kind
/// (StepKind) among `every` consecutive steps. `every` is 1 unless that would give more than `most`
/// entries. The keys, where [] marks a list, are:
/// - first[]: number of the entry's first step
/// - time[]: seconds of its slowest step
/// - kind[]: its StepKind
/// - every: consecutive steps for one entry of each kind
/// - quantiles[101]: quantiles of the measured steps' times, from 0 to 100%, linear between order
///   statistics; null if there are no measured steps
[[nodiscard]] nlohmann::ordered_json step_series(const results::PointData& point, std::size_t most);

/// Returns the times of a point's ranks as JSON, with a row for each rank, sorted by host and by
/// MPI's rank. If there are more than limits.rows ranks, only these have rows: the first rank;
/// ranks with the longest steps, with the longest computation, and for which others waited longest;
/// and others, spread evenly. The keys, where [] marks a list and {} an object, are:
/// - hosts[]: names
/// - rank[], world_rank[] (MPI's), host[] (index into hosts), by row
/// - step[]: median seconds of the rank's measured steps
/// - compute[], copies[] ... other[] (the parts of the breakdown), caused_wait[] (how long other
///   ranks waited for this one): seconds; null if the rank was not traced or the time is not known
/// - traced: number of traced ranks
/// - median{}: median over all ranks with a known time, for each of the lists of times
/// - cells: step times by rank and step; null for a single rank or without measured steps
/// - cells.first[]: number of the first step of each column
/// - cells.every, cells.steps: number of measured steps in a column, and in all
/// - cells.time[row][column]: the rank's step time relative to the median of all ranks in that
///   step, minus 1; of the steps in a column, the value that is largest in magnitude
[[nodiscard]] nlohmann::ordered_json rank_map(std::span<const results::RankFacts> facts,
                                              const PointReport& point, const DetailLimits& limits);

/// Returns one traced step of a point as lanes, one for each shown rank. The step is the one whose
/// length is nearest to the median of the analysed steps (see breakdown::step_counts()); null if no
/// trace is usable. Each pipeline stage (up to limits.stages) has a lane, for the rank whose other
/// coordinates are 0, if this rank was traced. Further lanes, up to limits.lanes, show the first
/// and the last rank, the ranks with the longest computation and for which others waited longest,
/// and then other ranks. The keys, where [] marks a list and {} an object, are:
/// - step: number of the step
/// - length: seconds from the earliest start to the latest end of any lane
/// - step_time: seconds of the slowest rank
/// - ops[], phases[], lanes[]: names of kinds of ops and of phases, and one object for each lane
/// - spans{}, idle{}: a list for each column; times are nanoseconds on the time axis that is drawn
/// - merged: number of spans that were merged into others
/// - spans_left_out: number of shorter spans that are not drawn
/// - totals{}: step, exposed and gap of each lane's LaneUse in nanoseconds, with all its spans
/// - breakdown{}: seconds, means over the ranks of the lanes and all analysed traced steps; null if
///   not known; wait_known and bubble_known are as in BreakdownResult
/// - left_out: number of traced ranks without a lane
/// An op's kind is a name of program::OpKind. Merged ops of several kinds are "compute", "copies",
/// "communication", or "mixed" if they are of more than one of these.
[[nodiscard]] nlohmann::ordered_json lanes(std::span<const results::RankFacts> facts,
                                           const PointReport& point, const DetailLimits& limits);

/// Returns the samples of a point's devices as a list of lines. The keys of a line, where [] marks
/// a list, are device, rank, world_rank (MPI's), host, quantity, unit, devices (the number of all
/// devices with this quantity), time[] (seconds after the first step), value[], averaged (the most
/// samples in a value), and low[] and high[] if samples with different values were averaged. A line
/// has at most limits.samples values, which are means of consecutive samples if there are more (of
/// throttle_reasons: a text with all reasons), without those that equal both their neighbours. A
/// quantity has at most limits.devices lines, for the devices that differ most from the others.
/// Clocks, power and temperature come first. Counters are left out, since their values have no
/// meaning by themselves.
[[nodiscard]] nlohmann::ordered_json device_lines(std::span<const results::RankFacts> facts,
                                                  const results::PointData& point,
                                                  const DetailLimits& limits);

/// Returns the number of lines of device_lines() if a quantity has at most `devices` lines.
[[nodiscard]] std::size_t count_device_lines(const results::PointData& point, std::size_t devices);

/// Returns the host of a rank of the point; "" where it is not known.
[[nodiscard]] std::string host_of(std::span<const results::RankFacts> facts,
                                  const results::PointData& point, int rank);

/// Returns a number rounded to `digits` significant digits; null if it is absent or not finite.
[[nodiscard]] nlohmann::ordered_json drawn(const std::optional<double>& value, int digits = 6);

}  // namespace isoscale::analysis::page
