// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "executor/cuda/gate.hpp"
#include "executor/cuda/marks.hpp"
#include "executor/cuda/prepare.hpp"
#include "timeline/timeline.hpp"

namespace isoscale::executor::cuda {

/// How events are recorded: plainly, or as nodes of the graph that is being captured.
enum class EventMode : std::uint8_t { plain, captured };

/// Events that are made when first asked for and used again in every play.
class EventPool {
 public:
  explicit EventPool(Timing timing) : timing_(timing) {}
  [[nodiscard]] cudaEvent_t at(std::size_t index);

 private:
  Timing timing_;
  std::vector<Event> events_;
};

/// The streams of one rank, and how a section is issued on them, in program order, by one thread.
class StreamPlayer {
 public:
  /// One stream per stream of the program; those that communicate have a high priority.
  enum class Marking : std::uint8_t { off, on };
  StreamPlayer(const program::RankProgram& program, Marking marking);

  /// Issues a section between a begin and an end on stream 0: all streams start after the first
  /// and have drained before the second. Traced, each op is between two events: `begin` is recorded
  /// once the stream's waits are over.
  /// The gate, if there is one, hears of each op that was launched.
  enum class Tracing : std::uint8_t { off, on };
  void issue(const PreparedSection& section, Tracing tracing, EventMode mode, Gate* gate = nullptr);

  /// Captures what issue() would do as a graph.
  [[nodiscard]] ExecutableGraph capture(const PreparedSection& section, Tracing tracing);

  [[nodiscard]] cudaStream_t main() const { return streams_.front().get(); }
  [[nodiscard]] Marks& marks() { return marks_; }
  [[nodiscard]] const Marks& marks() const { return marks_; }
  /// When the ops of the last traced play began and ended, after event `origin` that happened at
  /// `at`. The play must have ended.
  void read_spans(std::size_t op_count, cudaEvent_t origin, units::Nanoseconds at,
                  std::vector<timeline::Span>& spans);

 private:
  void record(cudaEvent_t event, cudaStream_t stream, EventMode mode) const;

  std::vector<Stream> streams_;
  Marks marks_;
  EventPool done_{Timing::off};                      ///< what other streams wait for
  EventPool joins_{Timing::off};                     ///< begin and end of every stream
  EventPool begins_{Timing::on}, ends_{Timing::on};  ///< of traced ops
};

}  // namespace isoscale::executor::cuda
