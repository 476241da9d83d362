// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/merge/join.hpp"
#include "analysis/report.hpp"
#include "results/run_data.hpp"

/// The pictures of a point as JSON: steps, ranks, timeline and devices, each thinned out to limits.
namespace isoscale::analysis {

/// The most that the pictures of a point have.
struct DetailLimits {
  std::size_t steps = 1000;      ///< entries of the series of steps
  std::size_t spans = 4000;      ///< of the timeline, over all lanes
  std::size_t columns = 200;     ///< of the cells of the rank map
  std::size_t samples = 200;     ///< of a line of a device
  std::size_t rows = 256;        ///< of the rank map
  std::size_t devices = 16;      ///< of a quantity
  std::size_t fewest_lanes = 8;  ///< of the timeline, where there are no stages
  std::size_t most_lanes = 32;   ///< of the timeline, however many stages there are

  bool operator==(const DetailLimits&) const = default;
};

/// Sentences about what was thinned out or left out; those of one kind are for several points.
using PageNotes = std::vector<std::string>;

/// A point that a page has pictures of. Nothing is owned.
struct DetailedPoint {
  std::size_t run = 0;  ///< into Report::runs
  const RunReport* report = nullptr;
  const PointReport* point = nullptr;
};

/// The points with step times of one run; of several runs the typical launch's of each joined
/// point.
[[nodiscard]] std::vector<DetailedPoint> detailed_points(const Report& report);

/// The data that pictures of a point are drawn from: run, point, ranks, steps, rank_map, timeline,
/// devices.
[[nodiscard]] nlohmann::ordered_json point_details(const DetailedPoint& at,
                                                   const DetailLimits& limits);

/// Adds to `notes` what was thinned out of the points to make `details`.
void note_details(const std::vector<DetailedPoint>& points, const nlohmann::ordered_json& details,
                  const DetailLimits& limits, PageNotes& notes);

/// The purpose of a step. The numbers are those of the page.
enum class StepKind : std::uint8_t { measured = 0, traced = 1, dropped = 2, warm_up = 3 };
[[nodiscard]] StepKind kind_of_step(const results::PointData& point, std::size_t step);

/// Seconds of a step, which are its slowest rank's; absent where some rank has no time.
[[nodiscard]] std::optional<double> time_of_step(const results::PointData& point, std::size_t step);

/// The times of a point's steps in order: first[], time[] (seconds, the largest of an entry's
/// steps), kind[], every, quantiles[101] of the measured steps (linear between order statistics;
/// null without any), injections[]. At most `most` entries, if need be of `every` steps each, those
/// of one kind among them; at least one entry a kind.
[[nodiscard]] nlohmann::ordered_json step_series(const results::PointData& point, std::size_t most);

/// Returns the times of a point with a row for each rank, sorted by host and MPI's rank: hosts[],
/// rank[], world_rank[] (MPI's), count[], host[] (into hosts), step[] (median seconds of its
/// measured steps), wait[] ... other[] (seconds; null where not traced or not known),
/// caused_wait[]; cells: first[], every, time[row][column], the rank's time of a measured step over
/// the median of all ranks' of that step - 1, or null for one rank or none measured. Above
/// limits.rows ranks, a row is a host's; above as many hosts, that of several. Of ranks put
/// together count[] says how many, world_rank[] is the lowest, step[] the largest, a cell the one
/// that lies furthest off, all else the mean.
[[nodiscard]] nlohmann::ordered_json rank_map(std::span<const results::RankFacts> facts,
                                              const PointReport& point, const DetailLimits& limits);

/// One traced step of a point, the one whose length is nearest the median of those that count, as
/// lanes of spans; null without a usable trace. A lane is a rank: one a stage (the others of its
/// coordinates 0) where there is a pipeline, else the first and last; then those that compute
/// longest and are waited for most, then others, until there are limits.fewest_lanes.
///
/// Keys: step, begin, length (seconds, of all lanes together), step_time (seconds, of the slowest
/// rank), ops[], phases[], lanes[], spans{} and idle{} (columns; nanoseconds after the begin),
/// merged (spans that are part of another one), merged_gaps (nanoseconds between those),
/// spans_left_out (the shortest), totals{} (columns by lane: LaneTotals, nanoseconds, of all
/// spans), breakdown{} (seconds, means over these lanes' ranks and all traced steps; null where
/// there is none; wait_known, bubble_known as in BreakdownResult), left_out (traced ranks without a
/// lane). An op's kind is a name of program::OpKind, or, of several put together, "compute",
/// "copies", "communication", or "mixed" where it was more than one of these.
[[nodiscard]] nlohmann::ordered_json lanes(std::span<const results::RankFacts> facts,
                                           const PointReport& point, const DetailLimits& limits);

/// The samples of a point's devices, as lines: device, rank, host, quantity, unit, time[]
/// (seconds after the first step), value[], averaged (samples a value, at most), and low[] and
/// high[] where samples were put together. A
/// line has at most limits.samples values: means of as many stretches of time with what was least
/// and most in each; of a set of bits, all that were set. Values between two that are the same are
/// left out where they are that too: the line stays. A quantity has at most limits.devices
/// lines, of the devices that differ most from the others. Clocks, power and temperature come
/// first; counters are left out, for their values say nothing.
[[nodiscard]] nlohmann::ordered_json device_lines(std::span<const results::RankFacts> facts,
                                                  const results::PointData& point,
                                                  const DetailLimits& limits);

/// The number of lines that `limits` leave out.
[[nodiscard]] std::size_t device_lines_left_out(const results::PointData& point,
                                                const DetailLimits& limits);

/// A number of a picture: six digits are finer than a pixel. Null where it is no number.
[[nodiscard]] nlohmann::ordered_json drawn(double value, int digits = 6);
[[nodiscard]] nlohmann::ordered_json drawn(const std::optional<double>& value, int digits = 6);

}  // namespace isoscale::analysis
