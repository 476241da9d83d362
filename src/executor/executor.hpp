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
#include <vector>

#include "base/error.hpp"
#include "comm/communicator.hpp"
#include "program/dtypes_and_buffers.hpp"
#include "program/program.hpp"
#include "results/records/executor_and_sampler_records.hpp"
#include "timeline/timeline.hpp"
#include "units/quantity.hpp"

/// The interface through which the runner lets a device play a program, that is, carry out the ops
/// of one rank. Each back end (host, cuda) is a folder with classes derived from Session and
/// Executor.
namespace isoscale::executor {

/// Tells if a play (see Play) records a span, the start and the end, of every op. This costs a
/// little time. Otherwise a play records only its own start and end.
enum class Trace : std::uint8_t { off, on };

/// Tells if the time of a play includes the time that the host needs to launch the first ops on the
/// GPU. counted: it does. hidden: the GPU waits until the host has launched the first ops and until
/// all ranks that take part in the section's collectives are ready; only then the time starts. The
/// host executor launches nothing and ignores this option.
enum class Launches : std::uint8_t { counted, hidden };

struct PlayTime {
  /// Times of this rank's steady clock. With Launches::hidden only the difference of the two has a
  /// meaning.
  units::Nanoseconds begin, end;
  /// True if Launches::hidden was asked for but the host did not launch the first ops in time, so
  /// that the time includes launches.
  bool is_late = false;
};

/// A request to play a section `times` times in a row; each of these executions is called a pass.
/// All streams are idle when the first pass begins and when the last pass has ended. A pass begins
/// when this rank's streams have ended the previous pass; it does not wait for other ranks. A
/// traced play makes a single pass.
struct Play {
  program::Section section = program::Section::step;
  Trace trace = Trace::off;
  std::uint32_t times = 1;
  /// The play throws TimedOut after this time; 0 = no limit. On the host the limit is for the
  /// messages of one exchange, on a GPU for the whole play.
  units::Seconds timeout{};
  Launches launches = Launches::counted;  ///< a traced play always uses Launches::counted
};

/// Thrown if an executor, its library or this machine does not support a request. The point (one
/// measured configuration) is then skipped with this reason and does not count as failed.
class Unsupported : public base::Error {
 public:
  using Error::Error;
};

/// Thrown if a communicator did not become ready in time and no participating rank reported
/// another error that could be the cause. Ranks may be stuck in the creation of the communicator,
/// so the job must end.
class NeverReady : public base::Error {
 public:
  using Error::Error;
};

/// Thrown if a play ended because another rank did not answer. After that, no rank's session for
/// this point (measured configuration) can play again.
class NoAnswer : public base::Error {
 public:
  using Error::Error;
};

/// Thrown if another rank did not answer in time.
class TimedOut : public NoAnswer {
 public:
  using NoAnswer::NoAnswer;
};

using program::Registration;
using program::SessionOptions;

using results::CommunicatorTime;
using results::GemmChoice;

/// Facts about a prepared session: what the executor decided, and how much memory and time it
/// needed. They are stored in the run file.
struct SessionFacts {
  bool folded = false;        ///< all streams are merged into one, in program order
  std::string folded_reason;  ///< the reason for merging; "" if streams are not merged
  int blas_threads = 0;  ///< number of threads of a BLAS call on the host; 0: unknown, or a GPU
  units::Bytes memory;   ///< allocated memory, including workspace
  units::Bytes host_memory{0};                ///< the pinned and pageable part of `memory`
  units::Seconds communicator_creation;       ///< time to make this session's communicators
  bool graph = false;                         ///< all steps are replayed as CUDA graphs
  std::vector<GemmChoice> gemm_choices = {};  ///< the algorithms chosen for this rank's GEMM shapes
  /// Times on this rank to create each communicator and to make the first call on it, in which NCCL
  /// connects the ranks.
  std::vector<CommunicatorTime> communicators = {};
};

/// The position of a session in the section that it executes. Other threads may read it meanwhile.
struct Whereabouts {
  program::Section section = program::Section::step;
  std::uint64_t plays = 0;  ///< number of passes that have begun, over all sections
  bool playing = false;
  /// The last op of each lane (stream) that is known to have begun; no_op if none is. Empty if the
  /// executor does not know.
  std::vector<std::uint32_t> begun{};
  /// For each lane, the index of an op that is known not to have begun yet; the number of ops of
  /// the section if no such op is known. The lane's ops between `begun` and `next` may have begun.
  /// If `next` is empty and `begun` is not, the lane's ops after `begun` have not begun.
  std::vector<std::uint32_t> next{};

  static constexpr std::uint32_t no_op = UINT32_MAX;
  bool operator==(const Whereabouts&) const = default;
};

/// Thrown in the thread of a stream that stops because another stream of the session has failed.
class Stopped : public base::Error {
 public:
  using Error::Error;
};

/// One rank's program, ready to run: its storage is allocated and its communicators are made.
class Session {
 public:
  virtual ~Session() = default;

  /// Plays a section on the calling thread (and on threads of the session). All streams are idle
  /// when the play begins and when it has ended. All ranks that take part must play the same
  /// sections in the same order, equally often. May throw NoAnswer, Stopped or another base::Error.
  virtual PlayTime play(const Play& what) = 0;
  /// Returns the spans of the last play with Trace::on, in program order, in times of this rank's
  /// steady clock.
  [[nodiscard]] virtual std::span<const timeline::Span> spans() const = 0;
  /// Returns the communication library's own estimate of how long the communication of a section
  /// takes: the sum over all calls of the section, or nullopt if the library gives no estimate.
  /// All ranks that take part must ask for the same sections.
  [[nodiscard]] virtual std::optional<units::Seconds> estimate(program::Section /*section*/) {
    return std::nullopt;
  }
  /// Returns how the BLAS library says that it computes a section's matrix multiplications, such as
  /// "tensor cores, tf32 inputs, f32 sums". If multiplications differ in this, their texts are
  /// joined with "; ". Returns "" if the library reports nothing or the section has no
  /// multiplications.
  [[nodiscard]] virtual std::string arithmetic(program::Section /*section*/) const { return ""; }
  /// read() copies the bytes of a slice's elements to `into`; write() copies bytes from `from` into
  /// the slice. No play may be running.
  virtual void read(const program::Slice& slice, std::span<std::byte> into) = 0;
  virtual void write(const program::Slice& slice, std::span<const std::byte> from) = 0;
  [[nodiscard]] virtual const SessionFacts& facts() const = 0;
  /// Gives up a session in which other ranks may be stuck; it cannot play again. When it is
  /// destroyed, its memory is not freed, since messages in flight may use it, and its communicators
  /// are dropped (host) or aborted (cuda).
  virtual void abandon() noexcept = 0;

  /// Returns the session's progress; nullopt if the executor does not report it. Any thread may
  /// call this.
  [[nodiscard]] virtual std::optional<Whereabouts> whereabouts() const { return std::nullopt; }
};

/// Deletes a session. The function `before`, if it is set, is called first, while the session still
/// exists.
struct EndSession {
  EndSession() = default;
  /// Converts from the deleter of a derived class, so that a std::unique_ptr to a derived session
  /// becomes a SessionPtr.
  template <class Derived>
  EndSession(const std::default_delete<Derived>& /*end*/) {}  // NOLINT(google-explicit-constructor)

  void operator()(Session* session) const {
    if (before) before();
    delete session;
  }

  std::function<void()> before{};
};
using SessionPtr = std::unique_ptr<Session, EndSession>;

/// The properties of a device.
struct Description {
  std::string name;    ///< "host", "cuda"
  std::string detail;  ///< "OpenBLAS 0.3.21 (SkylakeX), 1 thread", "NVIDIA H200, CUDA 13.0"
  std::vector<program::Precision> precisions;
  /// The UUID of the GPU whose memory the rank uses; "" = it uses the memory of its node. Other
  /// ranks of the node may use the same memory.
  std::string memory_pool{};
  std::optional<units::Bytes> memory_free;  ///< free bytes of that memory; absent: unknown
  int cores = 0;                            ///< logical CPUs (host) or cores (cuda) of this rank
  std::optional<int> compute_capability{};  ///< 90 = 9.0; absent: unknown or no GPU
  bool shared_device = false;               ///< some ranks share a GPU, so times have no meaning
  /// The reason why the device cannot run programs that communicate by Transport::symmetric, as
  /// far as it is known before a program is prepared; "" if no reason is known.
  std::string symmetric_problem{};
  /// Further facts of the device. Their keys are those under which run files store the facts of
  /// ranks.
  std::map<std::string, std::string> facts_text;
  std::map<std::string, double> facts_number;
};

class Executor {
 public:
  virtual ~Executor() = default;
  [[nodiscard]] virtual const Description& describe() const = 0;
  /// Makes a session. Collective over the communicator `point`, whose ranks are in mesh order.
  /// `set` holds every rank's program, so that all ranks make the same communicators in the same
  /// order. Throws Unsupported, NeverReady or another base::Error (for example if memory is too
  /// small; the message gives the needed and the free amount). Some ranks may throw while others do
  /// not, so the caller must agree with the other ranks before it plays. A session must be
  /// destroyed before its executor.
  [[nodiscard]] virtual SessionPtr prepare(const program::ProgramSet& set,
                                           const comm::Communicator& point,
                                           const SessionOptions& options = {}) = 0;
};

}  // namespace isoscale::executor
