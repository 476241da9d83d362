// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "comm/communicator.hpp"
#include "program/buffer.hpp"
#include "program/program.hpp"
#include "results/records/device_records.hpp"
#include "timeline/timeline.hpp"
#include "units/quantity.hpp"

/// Defines the interface through which programs are played on a device. Each back end is a folder
/// with classes derived from Session and Executor.
namespace isoscale::executor {

/// Tells if a play records a span (start and end) of each op, which costs a little time, or only
/// its own start and end.
enum class Trace : std::uint8_t { off, on };

/// Tells if the time of a play includes the time that the host needs to launch the first ops.
/// counted: it does. hidden: the GPU starts only after the host has launched the first ops and all
/// ranks with which the section has collectives are ready. The host executor launches nothing and
/// ignores this.
enum class Launches : std::uint8_t { counted, hidden };

struct PlayTime {
  /// Times of this rank's steady clock. If launches were hidden, only their difference has a
  /// meaning.
  units::Nanoseconds begin, end;
  /// True if launches were to be hidden but the first ops were not launched in time, so that the
  /// play's time includes launches.
  bool is_late = false;
};

/// A request to play a section `times` times in a row; each time is a pass. All streams are idle
/// when the first pass begins and when the last pass has ended. A pass begins when this rank's
/// streams have ended the previous one; it does not wait for other ranks. A traced play makes a
/// single pass.
struct Play {
  program::Section section = program::Section::step;
  Trace trace = Trace::off;
  std::uint32_t times = 1;
  /// The time after which the play throws TimedOut; 0 = no limit. On the host it limits the wait
  /// for the messages of one exchange, on a GPU the duration of the play.
  units::Seconds timeout{};
  Launches launches = Launches::counted;  ///< a traced play always counts them
};

/// Thrown if an executor, its library or this machine does not support a request. The point (one
/// measured configuration) is then skipped with this reason and does not count as failed.
class Unsupported : public base::Error {
 public:
  using Error::Error;
};

/// Thrown if a communicator did not become ready in time and no rank of the point has another
/// problem. Ranks may be stuck in the communicator, so the job must end.
class NeverReady : public base::Error {
 public:
  using Error::Error;
};

/// Thrown if a peer did not answer in time. No session of the point can play again.
class TimedOut : public base::Error {
 public:
  using Error::Error;
};

using program::Registration;
using program::SessionOptions;

using results::CommunicatorTime;
using results::GemmChoice;

/// The decisions that an executor made when it prepared a session, and the memory and time that it
/// needed. They are stored in the run file.
struct SessionFacts {
  bool folded = false;                        ///< all streams are merged into one, in program order
  std::string folded_reason;                  ///< "" when not folded
  int blas_threads = 0;                       ///< 0 = does not apply
  units::Bytes memory;                        ///< allocated memory, including workspace
  units::Bytes host_memory{0};                ///< the part of `memory` in host buffers
  units::Seconds communicator_creation;       ///< time to make this session's communicators
  bool graph = false;                         ///< steps are replayed as one CUDA graph
  std::vector<GemmChoice> gemm_choices = {};  ///< for this rank's GEMM shapes
  std::vector<CommunicatorTime> communicators = {};  ///< times on this rank; the first call
                                                     ///< includes connecting in NCCL
};

/// The progress of a session during a play, which other threads may read.
struct Whereabouts {
  program::Section section = program::Section::step;
  std::uint64_t plays = 0;  ///< number of passes that have begun, over all sections
  bool playing = false;
  /// For each lane (stream), the op that is known to have begun last, or no_op. Empty: not known.
  std::vector<std::uint32_t> begun{};
  /// For each lane, the first op after `begun` that is known not to have begun, or the number of
  /// ops of the section if there is none; any ops between the two may have begun. If `next` is
  /// empty and `begun` is not, no op after those in `begun` has begun.
  std::vector<std::uint32_t> next{};

  static constexpr std::uint32_t no_op = UINT32_MAX;
  bool operator==(const Whereabouts&) const = default;
};

/// Thrown in the thread of a stream that stops because another stream of the session has failed.
class Stopped : public base::Error {
 public:
  using Error::Error;
};

/// One rank's program, ready to play: its storage is allocated and its communicators are made.
class Session {
 public:
  virtual ~Session() = default;

  /// Plays a section on the calling thread (and on threads of the session). All streams are idle
  /// when the play begins and when it has ended. Every rank of the point must play the same
  /// sections in the same order, equally often. May throw TimedOut, Stopped or another base::Error.
  virtual PlayTime play(const Play& what) = 0;
  /// Returns the spans of the last play with Trace::on, in program order, in times of this rank's
  /// steady clock.
  [[nodiscard]] virtual std::span<const timeline::Span> spans() const = 0;
  /// Returns the communication library's own estimate of the time of a section's communication, as
  /// the sum over its calls; nullopt if the library gives no estimate. Every rank of the point must
  /// ask for the same sections.
  [[nodiscard]] virtual std::optional<units::Seconds> estimate(program::Section /*section*/) {
    return std::nullopt;
  }
  /// Returns the arithmetic of a section's matrix multiplications as the BLAS library reports it,
  /// such as "tensor cores, tf32 inputs, f32 sums", joined with "; ". Returns "" if the library
  /// reports nothing or the section has no multiplications.
  [[nodiscard]] virtual std::string arithmetic(program::Section /*section*/) const { return ""; }
  /// read() and write() copy raw elements out of and into a slice; no play may be running.
  virtual void read(const program::Slice& slice, std::span<std::byte> into) = 0;
  virtual void write(const program::Slice& slice, std::span<const std::byte> from) = 0;
  [[nodiscard]] virtual const SessionFacts& facts() const = 0;
  /// Gives up a session in which other ranks may be stuck; it cannot play again. Its communicators
  /// and memory are not freed, since messages in flight may use them.
  virtual void abandon() noexcept = 0;

  /// Returns the session's progress; nullopt if the executor does not report it. Any thread may
  /// call this.
  [[nodiscard]] virtual std::optional<Whereabouts> whereabouts() const { return std::nullopt; }
};

/// Ends a session. `before`, if there is one, is called first, while the session is still whole.
struct EndSession {
  EndSession() = default;
  /// Lets a pointer that owns an object of a derived class become a SessionPtr.
  template <class Derived>
  EndSession(const std::default_delete<Derived>& /*end*/) {}  // NOLINT(google-explicit-constructor)

  void operator()(Session* session) const {
    if (before) before();
    delete session;
  }

  std::function<void()> before{};
};
using SessionPtr = std::unique_ptr<Session, EndSession>;

/// Tells which ranks share the free memory that a rank reports.
enum class MemoryPool : std::uint8_t {
  rank,  ///< only that rank: a GPU
  node,  ///< all ranks of its node
};

/// The properties of a device.
struct Description {
  std::string name;    ///< "host", "cuda"
  std::string detail;  ///< "OpenBLAS 0.3.21, 1 thread", "NVIDIA H200, CUDA 13.0"
  std::vector<program::Precision> precisions;
  std::optional<units::Bytes> memory_free;  ///< free in the pool; absent: unknown
  MemoryPool memory_pool = MemoryPool::rank;
  int cores = 0;                            ///< cores this rank is bound to
  std::optional<int> compute_capability{};  ///< 90 = 9.0; absent: unknown or no GPU
  bool shared_device = false;               ///< some ranks share a GPU, so times have no meaning
  /// The reason why programs with Transport::symmetric cannot be played, as far as it is known
  /// before a program is prepared; "" if there is none.
  std::string symmetric_problem{};
  /// Further facts of the device, by the keys that run files use for the facts of ranks.
  std::map<std::string, std::string> facts_text;
  std::map<std::string, double> facts_number;
};

class Executor {
 public:
  virtual ~Executor() = default;
  [[nodiscard]] virtual const Description& describe() const = 0;
  /// Makes a session; collective over `point`, whose ranks are in mesh order. `set` holds every
  /// rank's program, so that all ranks make the same communicators in the same order. Throws
  /// Unsupported, NeverReady or another base::Error (for example if memory is too small, with the
  /// needed and the free amount). Some ranks may throw while others do not, so the caller agrees
  /// with the other ranks before it plays. A session must end before its executor does.
  [[nodiscard]] virtual SessionPtr prepare(const program::ProgramSet& set,
                                           const comm::Communicator& point,
                                           const SessionOptions& options = {}) = 0;
};

}  // namespace isoscale::executor
