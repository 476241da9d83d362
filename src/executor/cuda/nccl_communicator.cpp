// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/nccl_communicator.hpp"

#include <fmt/format.h>

#include <cstring>
#include <span>
#include <thread>

#include "executor/cuda/check.hpp"
#include "executor/cuda/handles.hpp"
#include "executor/cuda/nccl_versions.hpp"
#include "units/text.hpp"

namespace isoscale::executor::cuda {
namespace {

constexpr std::chrono::microseconds pause{100};  // between two looks at a call in the background

void require_sound(ncclComm_t communicator, const std::string& name, const char* when) {
  ncclResult_t state = ncclSuccess;
  check(ncclCommGetAsyncError(communicator, &state));
  if (state == ncclSuccess || state == ncclInProgress) return;
  const char* const detail = ncclGetLastError(communicator);
  const std::string text =
      fmt::format("NCCL communicator {} failed {}: {}{}{}", name, when, ncclGetErrorString(state),
                  detail == nullptr ? "" : ": ", detail == nullptr ? "" : detail);
  if (is_refusal(state)) throw NcclRefusal(text);
  throw NcclError(text);
}

/// Looks at the calls under way on `communicator` until they are done.
void wait_for(ncclComm_t communicator, const std::string& name, units::Seconds limit) {
  const units::Nanoseconds end = comm::now() + units::to_nanoseconds(limit);
  while (true) {
    ncclResult_t state = ncclSuccess;
    check(ncclCommGetAsyncError(communicator, &state));
    if (state != ncclInProgress) break;
    if (limit > units::Seconds{} && comm::now() > end) {
      throw NcclError(fmt::format(
          "NCCL communicator {} was not ready after {}: a rank is missing, or the ranks cannot "
          "reach each other; NCCL_DEBUG=INFO prints more, NCCL_SOCKET_IFNAME chooses the network",
          name, units::format(limit)));
    }
    std::this_thread::sleep_for(pause);
  }
  require_sound(communicator, name, "while it was set up");
}

}  // namespace

NcclCommunicator::NcclCommunicator(std::string name)
    : name_(std::make_unique<const std::string>(std::move(name))) {}

NcclCommunicator NcclCommunicator::world(const comm::Communicator& point, units::Seconds limit) {
  ncclUniqueId id{};
  std::string problem;
  if (point.rank() == 0) {
    try {
      check(ncclGetUniqueId(&id));
    } catch (const NcclError& error) {
      problem = error.what();
    }
  }
  if (const comm::Vote vote = comm::all_ok(point, problem); !vote.ok) throw NcclError(vote.why);
  point.broadcast(std::as_writable_bytes(std::span{&id, 1}));

  NcclCommunicator result{"world"};
  result.size_ = point.size();
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  set_name(config, result.name());
  ncclComm_t communicator = nullptr;
  const ncclResult_t started =
      ncclCommInitRankConfig(&communicator, point.size(), id, point.rank(), &config);
  result.handle_.reset(communicator);
  result.settle(started, limit);
  return result;
}

NcclCommunicator NcclCommunicator::split(int colour, int key, const std::string& name,
                                         units::Seconds limit) const {
  NcclCommunicator result{name};
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 1;
  set_name(config, result.name());
  // NCCL writes the child here when it is made, in the background, also after it has failed: then
  // nobody may free the place.
  auto place = std::make_unique<ncclComm_t>(nullptr);
  try {
    // On the parent: the child is not there before that.
    settle(ncclCommSplit(get(), colour, key, place.get(), &config), limit);
  } catch (...) {
    static_cast<void>(place.release());
    throw;
  }
  const ncclComm_t communicator = *place;
  result.handle_.reset(communicator);
  if (communicator == nullptr) {
    throw NcclError(fmt::format("NCCL made no communicator {} on this rank", name));
  }
  wait_for(communicator, name, limit);
  check(ncclCommCount(communicator, &result.size_));
  return result;
}

void NcclCommunicator::poll() const { require_sound(get(), name(), "in the background"); }

void NcclCommunicator::settle(ncclResult_t result, units::Seconds limit) const {
  check(result);
  if (get() != nullptr) wait_for(get(), name(), limit);
}

void NcclCommunicator::close() {
  const ncclComm_t communicator = handle_.release();
  if (communicator == nullptr) return;
  check(ncclCommFinalize(communicator));
  wait_for(communicator, name(), units::Seconds{30});
  check(ncclCommDestroy(communicator));
}

void NcclCommunicator::abort() noexcept { handle_.reset(); }

NcclGroup::NcclGroup() { check(ncclGroupStart()); }

NcclGroup::~NcclGroup() {
  if (state_ == State::open) log_release("a group", ncclGroupEnd());
}

void NcclGroup::end() {
  state_ = State::ended;
  check(ncclGroupEnd());
}

std::optional<units::Seconds> NcclGroup::end_estimated() {
  state_ = State::ended;
  double microseconds = -1;
  check(end_group_estimated(microseconds));
  if (microseconds < 0) return std::nullopt;
  return units::Seconds{microseconds * 1e-6};
}

void NcclCommunicator::AbortTraits::free(type communicator) noexcept {
  // Destroying may wait for peers that will never answer; aborting does not.
  log_release("a communicator", ncclCommAbort(communicator));
}

}  // namespace isoscale::executor::cuda
