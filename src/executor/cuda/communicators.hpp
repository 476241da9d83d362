// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/handle.hpp"
#include "comm/communicator.hpp"
#include "executor/cuda/errors_and_handles.hpp"
#include "executor/executor.hpp"
#include "executor/operand_addresses.hpp"
#include "executor/point_requirements.hpp"
#include "program/op.hpp"
#include "units/quantity.hpp"

/// The NCCL communicators of one rank: determines which ones a set of programs needs, makes and
/// keeps them, and starts calls on them.
namespace isoscale::executor::cuda {

/// Owns one NCCL communicator; move-only. The calls that make it return at once and are polled
/// until a time limit, so that a missing peer causes an error and not a hang.
///
/// world() makes a non-blocking communicator, which serves only to make others from it by split().
/// The communicators that split() makes carry a program's communication and are blocking. Since
/// NCCL 2.24, each call on a non-blocking communicator starts a new thread; this would be measured
/// as a launch gap that training programs do not have.
class NcclCommunicator {
 public:
  NcclCommunicator() = default;
  /// Collective over `point`: makes a communicator of its ranks. Throws NcclError, or NeverReady if
  /// this takes longer than `limit`.
  static NcclCommunicator world(const comm::Communicator& point, units::Seconds limit);
  /// Collective over this communicator: makes one for the ranks of each colour, in which they are
  /// numbered in the order of their keys.
  [[nodiscard]] NcclCommunicator split(int colour, int key, const std::string& name,
                                       units::Seconds limit) const;

  [[nodiscard]] ncclComm_t get() const { return handle_.get(); }
  [[nodiscard]] const std::string& name() const { return *name_; }
  [[nodiscard]] int size() const { return size_; }

  /// Throws NcclError, with the name of the communicator, if it has failed in the background;
  /// NoAnswer if the cause is another rank or the network.
  void poll() const;
  /// Waits until the call that returned `result`, which NCCL may still continue in the background,
  /// has finished. Throws NcclError, or NeverReady if this takes longer than `limit`.
  void settle(ncclResult_t result, units::Seconds limit) const;
  /// Closes the communicator; all calls on it must have ended.
  void close();
  /// Aborts the calls in progress; for a session that has failed.
  void abort() noexcept;

 private:
  explicit NcclCommunicator(std::string name);

  std::unique_ptr<const std::string> name_;  ///< NCCL keeps a pointer to the name
  /// The destructor aborts a communicator that was not closed, since ncclCommDestroy may wait for
  /// peers that never answer.
  base::Handle<ReleasedBy<ncclComm_t, ncclCommAbort>> handle_;
  int size_ = 0;
};

/// An NCCL group call: the calls made between its constructor and end() start together.
class NcclGroup {
 public:
  NcclGroup();
  ~NcclGroup();  ///< ends the group if an exception left it open
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;
  void end();
  /// Ends the group without starting its calls and returns the time that NCCL expects them to take;
  /// nullopt if NCCL gives no estimate.
  [[nodiscard]] std::optional<units::Seconds> end_estimated();

 private:
  bool is_open_ = true;
};

/// A collective that is ready to start.
struct CollectiveCall {
  program::CollectiveKind kind = program::CollectiveKind::barrier;
  CollectiveData data;
  ncclComm_t communicator = nullptr;
  ncclDataType_t type = ncclUint8;
  ncclRedOp_t operation = ncclSum;
  int root = 0;
};
/// Starts the collective on `stream`. Throws NcclError.
void launch(const CollectiveCall& call, cudaStream_t stream);
/// True if the collective computes with elements; otherwise it only moves them.
[[nodiscard]] bool reduces(program::CollectiveKind kind);
/// True if NCCL has no call for the collective, which is then carried out as an ExchangeCall.
[[nodiscard]] bool is_made_of_messages(program::CollectiveKind kind);
/// Throws base::Error if the collective is in place in a way that MPI allows and NCCL does not.
void require_possible(const CollectiveCall& call);

struct Message {
  program::Direction direction = program::Direction::send;
  std::byte* data = nullptr;
  std::uint64_t count = 0;
  ncclDataType_t type = ncclUint8;
  int peer = 0;  ///< rank in the communicator
  ncclComm_t communicator = nullptr;
};

/// The messages of one NCCL group call, which start together and end together.
struct ExchangeCall {
  std::vector<Message> messages;
};
/// Starts the messages on `stream`. Throws NcclError, or NoAnswer if a peer cannot be reached.
void launch(const ExchangeCall& call, cudaStream_t stream);
/// Returns the messages of a collective for which NCCL has no call. They include messages of a rank
/// to itself.
[[nodiscard]] ExchangeCall messages_of(const CollectiveCall& call, const program::Collective& op);

[[nodiscard]] ncclRedOp_t nccl_operation(program::Reduction reduction);

/// The kind of a link. A link joins two ranks that are `distance` apart along an axis. Along the
/// axis, links of parity 0 and parity 1 alternate. The link that closes an odd ring has parity 2,
/// since it meets one of each. Unless the axis is in CommunicatorPlan::joined, each kind has its
/// own communicator, so that a pipeline stage's exchange with the previous stage does not wait for
/// its exchange with the next stage.
struct LinkKind {
  mesh::Axis axis = mesh::Axis::pp;
  int distance = 1;
  int parity = 0;  ///< (coordinate of the link's begin / distance) modulo 2; 2 in place of 0 if the
                   ///< link wraps around

  auto operator<=>(const LinkKind&) const = default;
};
/// Returns the kind of the link from `rank` to the rank `offset` steps along `axis`; both ranks get
/// the same kind.
[[nodiscard]] LinkKind link_kind(const mesh::Shape& mesh, int rank, mesh::Axis axis,
                                 std::int32_t offset);

/// Returns the transfers of `rank` in an exchange, ordered by link. The order is the same on both
/// ranks of a link, so that messages match even if two links join the same two ranks.
[[nodiscard]] std::vector<program::Transfer> transfers_by_link(const mesh::Shape& mesh, int rank,
                                                               const program::Exchange& exchange);

/// The communicators that a set of programs needs, in the order in which all ranks make them.
struct CommunicatorPlan {
  std::vector<std::pair<mesh::AxisSet, program::StreamId>> collectives;
  std::vector<LinkKind> links;
  /// The axes for which one communicator carries all messages. NCCL then starts one kernel for all
  /// messages of an op; kernels of several communicators on one stream would run one after the
  /// other. An axis is joined only if all its messages are on one stream. If two of its links join
  /// the same two ranks, all ranks must also have the same exchanges in the same order, so that
  /// messages of different links match by their order.
  mesh::AxisSet joined{};

  /// Returns the kind of the communicator that carries the messages of a link. Distance 0 stands
  /// for all links of a joined axis.
  [[nodiscard]] LinkKind carrier(const LinkKind& link) const {
    return joined.contains(link.axis) ? LinkKind{.axis = link.axis, .distance = 0, .parity = 0}
                                      : link;
  }
};
[[nodiscard]] CommunicatorPlan communicator_plan(const program::ProgramSet& set);

/// The first calls on a communicator, in which NCCL makes all connections that a program will use:
/// the largest collective of each kind, type, reduction and root, and the largest message of each
/// type to and from each peer. NCCL connects an algorithm and allocates its buffers only when a
/// call first uses the algorithm.
struct FirstCalls {
  std::vector<CollectiveCall> collectives;  ///< in order of their first use in the program
  ExchangeCall exchange;                    ///< empty if there are no messages
};

/// The NCCL communicators of one rank.
class Communicators {
 public:
  /// Collective over `point`: makes the communicators that `set` needs, if any. Each is counted in
  /// `point` (count_other()), so that the supervisor sees progress. Throws NeverReady if making one
  /// takes longer than `limit` (0: no limit).
  Communicators(const program::ProgramSet& set, const comm::Communicator& point,
                units::Seconds limit);

  /// True if these communicators can be used for `set`: the ranks and the mesh are the same, no
  /// communicator has failed, and `set` needs at least one communicator and none that is missing.
  [[nodiscard]] bool suit(const program::ProgramSet& set, const comm::Communicator& point) const;
  /// Replaces the communicator plan by that of `set`, and aborts communicators that `set` does not
  /// need. Requires that suit() is true.
  void hand_over(const program::ProgramSet& set);

  [[nodiscard]] ncclComm_t collective(mesh::AxisSet axes, program::StreamId stream) const;
  [[nodiscard]] ncclComm_t link(const LinkKind& kind) const;
  /// Returns the number, below link_count(), of the communicator that carries a link; it is the
  /// same on all ranks.
  [[nodiscard]] std::size_t link_number(const LinkKind& kind) const;
  [[nodiscard]] std::size_t link_count() const { return plan_.links.size(); }
  /// Collective over `point`: makes the first calls, one communicator after another. Throws
  /// NeverReady if the calls on a communicator take longer than the `limit` of the constructor;
  /// the time that NCCL itself waits while it connects ranks is not limited.
  void connect(const comm::Communicator& point, const std::map<ncclComm_t, FirstCalls>& calls);
  /// Returns the communicators that carry the programs' communication, in the order in which all
  /// ranks made them.
  [[nodiscard]] std::vector<ncclComm_t> all() const;
  /// Returns the communicators over which some rank sends or receives data in buffers of `space`.
  [[nodiscard]] std::vector<ncclComm_t> touching(const program::ProgramSet& set,
                                                 program::Space space) const;
  [[nodiscard]] const std::vector<CommunicatorTime>& facts() const { return facts_; }

  /// Throws NcclError or NoAnswer when one of the communicators has failed in the background.
  void poll() const;
  void close();
  /// Aborts the calls in progress on all communicators; for a session that has failed.
  void abort() noexcept;

 private:
  void wait_for(const NcclCommunicator& communicator, cudaStream_t stream) const;
  /// Returns the index in all_ of the communicator for collectives along `axes` on a stream.
  [[nodiscard]] std::size_t number_of(mesh::AxisSet axes, program::StreamId stream) const;

  mesh::Shape mesh_;
  int rank_;
  std::vector<int> ranks_;  ///< indexed by rank in `point`: rank in MPI_COMM_WORLD
  units::Seconds limit_;
  CommunicatorPlan plan_;
  std::vector<NcclCommunicator> all_;  ///< for plan_.collectives, then for plan_.links
  std::vector<CommunicatorTime> facts_;
};

/// Collective over `point`: returns `kept`, the communicators of the last session, or new ones.
/// Making communicators takes seconds from 64 ranks on, so a session reuses those of the last one
/// if all its ranks find that they suit(). Otherwise `kept` is aborted, not closed: this session
/// may have other ranks, and an abort does not wait for any other rank. Throws the same errors as
/// the constructor of Communicators.
[[nodiscard]] std::unique_ptr<Communicators> kept_or_new(std::unique_ptr<Communicators> kept,
                                                         const program::ProgramSet& set,
                                                         const comm::Communicator& point,
                                                         units::Seconds limit);

/// A barrier on the GPUs of ranks that have collectives in a section: an all_reduce of one word on
/// each communicator that any rank uses for these collectives. GPUs leave it within microseconds of
/// each other; after a barrier of the hosts, they would differ by the time that each host needs for
/// its next launches. Exchanges have no barrier, since it would connect ranks that otherwise have
/// no link, and one link that hangs would also stop the others.
class DeviceBarrier {
 public:
  DeviceBarrier() = default;
  DeviceBarrier(const program::ProgramSet& set, const Communicators& communicators);

  /// Enters the barrier on `stream`; in the first call for a section, NCCL may still make
  /// connections. Throws NcclError.
  void enter(program::Section section, cudaStream_t stream) const;
  /// Drops the word that the barrier reduces without freeing it, as kernels may still use it.
  void abandon() noexcept { static_cast<void>(word_.release()); }

 private:
  DeviceMemory word_;
  std::vector<std::vector<ncclComm_t>> of_section_;  ///< for each section, the communicators of its
                                                     ///< collectives; same order on all ranks
};

}  // namespace isoscale::executor::cuda
