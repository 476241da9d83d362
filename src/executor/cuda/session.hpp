// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "executor/cuda/communicators.hpp"
#include "executor/cuda/gate_and_progress_words.hpp"
#include "executor/cuda/memory.hpp"
#include "executor/cuda/prepare.hpp"
#include "executor/cuda/symmetric_transport.hpp"
#include "executor/executor.hpp"
#include "executor/plugin.hpp"
#include "program/program.hpp"
#include "timeline/timeline.hpp"

/// The session of one rank on a GPU, and the player that issues its sections on streams.
namespace isoscale::executor::cuda {

/// An NVTX range, which a profiler shows for the thread that issues work, for as long as this
/// object exists. Ranges of a thread may nest.
class Range {
 public:
  /// Begins a range, or none if the name is null. The profiler copies the name.
  explicit Range(const char* name);
  ~Range();
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

 private:
  bool is_open_;
};

/// Returns the NVTX ranges of a section's ops.
[[nodiscard]] std::vector<OpRange> ranges_of(const program::Program& section);

/// Tells if events are recorded plainly, or as nodes of the graph that is being captured.
enum class EventMode : std::uint8_t { plain, captured };

/// Events that are made at first use and reused in every execution of a section.
class EventPool {
 public:
  explicit EventPool(Timing timing) : timing_(timing) {}
  [[nodiscard]] cudaEvent_t at(std::size_t index);

 private:
  Timing timing_;
  std::vector<Event> events_;
};

/// The streams of one rank; one thread issues a section on them in program order.
class StreamPlayer {
 public:
  /// Makes one CUDA stream for each stream of the program; those that communicate get a high
  /// priority, except stream 0. Prepares Marks, by which streams show their progress, if an op of
  /// `prepared` is marked.
  StreamPlayer(const program::RankProgram& program, const PreparedProgram& prepared);

  /// Issues a section. All streams wait for stream 0 before their first op, and stream 0 waits for
  /// all streams after their last op. If traced, two timing events are recorded for each op: one
  /// before the op but after its waits for other streams, and one after the op. `gate`, if given,
  /// is told of each launched op.
  void issue(const PreparedSection& section, Trace trace, EventMode mode, Gate* gate = nullptr);

  /// Makes the events of a traced section beforehand, so that making them delays no op.
  void make_trace_events(std::size_t op_count);

  /// Captures the work of issue() as a graph.
  [[nodiscard]] ExecutableGraph capture(const PreparedSection& section, Trace trace);

  [[nodiscard]] cudaStream_t main() const { return streams_.front().get(); }
  [[nodiscard]] Marks& marks() { return marks_; }
  [[nodiscard]] const Marks& marks() const { return marks_; }
  /// Reads the times at which the ops of the last traced play began and ended. The play must have
  /// ended; the event `origin` happened at the time `at`.
  void read_spans(std::size_t op_count, cudaEvent_t origin, units::Nanoseconds at,
                  std::vector<timeline::Span>& spans);

 private:
  std::vector<Stream> streams_;
  Marks marks_;
  EventPool done_{Timing::off};   ///< recorded after ops that other streams wait for
  EventPool joins_{Timing::off};  ///< recorded at the start of stream 0 and at the end of the
                                  ///< others
  EventPool begins_{Timing::on}, ends_{Timing::on};  ///< start and end of traced ops
};

/// The parts that a session is made from.
struct SessionParts {
  std::unique_ptr<Memory> memory;
  std::unique_ptr<Communicators> communicators;
  /// The session's destructor moves the communicators here, or closes them if this is null. If the
  /// session has failed, it aborts them.
  std::unique_ptr<Communicators>* keeper = nullptr;
  Registrations registrations;
  Puts puts;
  DeviceBarrier barrier;
  PreparedProgram program;
  StreamPlayer player;
  settings::Graph graph = settings::Graph::off;
  settings::Nvtx nvtx = settings::Nvtx::off;
  SessionFacts facts;
};

class CudaSession final : public Session {
 public:
  explicit CudaSession(SessionParts parts);
  ~CudaSession() override;
  CudaSession(const CudaSession&) = delete;
  CudaSession& operator=(const CudaSession&) = delete;

  /// Measures the time between two events on the GPU. With Launches::counted, the first event
  /// happens as soon as play() is called, since the streams are idle. With Launches::hidden, it
  /// happens once the host has launched the first ops behind it in the stream (or Gate::patience is
  /// over), and all ranks with which the section has collectives have reached it. The first play of
  /// a section does not wait for the launches, since libraries load kernels and make connections
  /// then.
  PlayTime play(const Play& what) override;
  [[nodiscard]] std::span<const timeline::Span> spans() const override { return spans_; }
  /// Returns the sum of the times that ncclGroupSimulateEnd gives for the collectives, each in a
  /// group of its own. Returns nullopt if the section has no collectives or has messages, for which
  /// NCCL has no estimates; also if this NCCL gives no estimate or the session has failed.
  [[nodiscard]] std::optional<units::Seconds> estimate(program::Section section) override;
  [[nodiscard]] std::string arithmetic(program::Section section) const override;
  void read(const program::Slice& slice, std::span<std::byte> into) override;
  void write(const program::Slice& slice, std::span<const std::byte> from) override;
  [[nodiscard]] const SessionFacts& facts() const override { return parts_.facts; }
  void abandon() noexcept override { failed_ = true; }
  /// Reads the progress from the marks of the streams. Without marks, Whereabouts::begun and next
  /// are empty.
  [[nodiscard]] std::optional<Whereabouts> whereabouts() const override;

 private:
  [[nodiscard]] PlayTime play_checked(const Play& what);
  /// Issues all passes (runs of the section): each replays `graph`, or issues the section op by op
  /// if `graph` is null.
  void issue(const Play& what, const PreparedSection& section, cudaGraphExec_t graph, Gate* gate);
  /// Returns the graph of a section, which is captured when it is first needed.
  [[nodiscard]] cudaGraphExec_t graph_of(program::Section section, Trace trace);
  /// Records the first of anchors_ on the idle stream, and returns the host's time at which it
  /// happened. Of several attempts it keeps the one that took the host the least time.
  [[nodiscard]] units::Nanoseconds anchor(cudaStream_t stream);
  /// Waits until `event` has happened, and polls the communicators meanwhile. Throws NcclError or
  /// CudaError on a failure, and TimedOut if the event has not happened after `timeout` (0 = no
  /// limit).
  void wait_for(cudaEvent_t event, units::Seconds timeout) const;

  SessionParts parts_;
  Event begin_ = make_event(Timing::on), end_ = make_event(Timing::on);
  /// Two events by which anchor() compares the clocks of host and GPU; it leaves the better first.
  std::array<Event, 2> anchors_{make_event(Timing::on), make_event(Timing::on)};
  /// The captured graphs of sections. The first execution of a section does not use a graph.
  std::map<std::pair<program::Section, Trace>, ExecutableGraph> graphs_;
  std::optional<Gate> gate_;  ///< made when it is first needed
  std::set<program::Section> played_;
  std::uint32_t steps_ = 0;  ///< number of play() calls on the step section so far
  std::vector<timeline::Span> spans_;
  bool failed_ = false;
  // Other threads read these to see the session's progress.
  std::atomic<program::Section> section_{program::Section::step};
  std::atomic<std::uint64_t> passes_{0};  ///< passes made before the current play() call
  std::atomic<bool> playing_{false};
};

}  // namespace isoscale::executor::cuda
