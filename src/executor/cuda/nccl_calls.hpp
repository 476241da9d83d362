// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/handle.hpp"
#include "comm/communicator.hpp"
#include "executor/resolver.hpp"
#include "program/op.hpp"
#include "units/quantity.hpp"

/// One communicator of NCCL, and the calls that are made on it.
namespace isoscale::executor::cuda {

/// Owns one NCCL communicator; move-only. It is made by non-blocking calls with a time limit, so
/// that a missing peer causes an error and not a hang.
///
/// The communicators that carry a program's communication are blocking: since NCCL 2.24 each call
/// on a non-blocking communicator starts a new thread, which would be measured as a launch gap that
/// training programs do not have. They are split from a non-blocking communicator of all ranks.
class NcclCommunicator {
 public:
  NcclCommunicator() = default;
  /// Collective over `point`: makes a communicator of its ranks. Throws NcclError, or NeverReady if
  /// this takes longer than `limit`.
  static NcclCommunicator world(const comm::Communicator& point, units::Seconds limit);
  /// Collective over this communicator: makes one for the ranks of each colour, ordered by key.
  [[nodiscard]] NcclCommunicator split(int colour, int key, const std::string& name,
                                       units::Seconds limit) const;

  [[nodiscard]] ncclComm_t get() const { return handle_.get(); }
  [[nodiscard]] const std::string& name() const { return *name_; }
  [[nodiscard]] int size() const { return size_; }

  /// Throws NcclError, with the name of the communicator, if it has failed in the background.
  void poll() const;
  /// Waits until a call that may continue in the background has finished. Throws NcclError, or
  /// NeverReady if this takes longer than `limit`.
  void settle(ncclResult_t result, units::Seconds limit) const;
  /// Closes the communicator; its streams must have drained.
  void close();
  /// Aborts the calls in progress; for a session that has failed.
  void abort() noexcept;

 private:
  struct AbortTraits {
    using type = ncclComm_t;
    static type null() { return nullptr; }
    static void free(type communicator) noexcept;
  };

  explicit NcclCommunicator(std::string name);

  std::unique_ptr<const std::string> name_;  ///< NCCL keeps a pointer to the name
  base::Handle<AbortTraits> handle_;
  int size_ = 0;
};

/// A group call: the calls made between its constructor and end() start together.
class NcclGroup {
 public:
  NcclGroup();
  ~NcclGroup();  ///< ends the group if an exception left it open
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;
  void end();
  /// Ends the group without starting its calls and returns the time that NCCL expects them to take;
  /// nullopt if NCCL does not tell.
  [[nodiscard]] std::optional<units::Seconds> end_estimated();

 private:
  enum class State : std::uint8_t { open, ended } state_ = State::open;
};

/// A collective that is ready to start. If NCCL has no call for its kind, it is done by a group of
/// sends and receives.
struct CollectiveCall {
  program::CollectiveKind kind = program::CollectiveKind::barrier;
  CollectiveData data;
  ncclComm_t communicator = nullptr;
  ncclDataType_t type = ncclUint8;
  ncclRedOp_t operation = ncclSum;
  int root = 0;
  std::vector<std::uint64_t> send_counts{}, receive_counts{};  ///< of an uneven all_to_all
};
/// Starts the collective on `stream`. Throws NcclError.
void launch(const CollectiveCall& call, cudaStream_t stream);
/// True if NCCL has no call for the collective.
[[nodiscard]] bool is_made_of_messages(program::CollectiveKind kind);
/// Throws base::Error if the collective is in place in a way that MPI allows and NCCL does not.
void require_possible(const CollectiveCall& call);

struct Message {
  program::Direction direction = program::Direction::send;
  std::byte* data = nullptr;
  std::uint64_t count = 0;
  ncclDataType_t type = ncclUint8;
  int peer = 0;  ///< in the communicator
  ncclComm_t communicator = nullptr;
};

/// The messages of one group call, which start together and end together.
struct ExchangeCall {
  std::vector<Message> messages;
};
void launch(const ExchangeCall& call, cudaStream_t stream);

[[nodiscard]] ncclRedOp_t nccl_operation(program::Reduction reduction);

}  // namespace isoscale::executor::cuda
