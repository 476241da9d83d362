// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Memory that NCCL gives and that its communicators are told of, and the kernel of puts, over MPI:
// the same rendezvous, of the same channels in the same windows.
#include <algorithm>
#include <cstdlib>
#include <string_view>

#include <nccl_device.h>

#include "executor/cuda/kernels/kernels.hpp"
#include "tests/cuda/nccl_work.hpp"

using namespace isoscale::standin;

namespace {

/// How many communicators know a piece of memory; it must not be freed while one does.
std::map<const void*, int>& known() {
  static std::map<const void*, int> one;
  return one;
}

/// Communicators by their windows.
std::map<void*, std::weak_ptr<Ring>>& rings() {
  static std::map<void*, std::weak_ptr<Ring>> one;
  return one;
}

void* add(std::map<void*, Range>& ranges, const Range& range) {
  ++known()[range.begin];
  ++machine().alive.registrations;
  static std::uintptr_t last = 0;
  void* const handle = reinterpret_cast<void*>(++last);
  ranges[handle] = range;
  return handle;
}

ncclResult_t remove(std::map<void*, Range>& ranges, void* handle) {
  const auto found = ranges.find(handle);
  if (found == ranges.end()) return ncclInvalidArgument;
  --known()[found->second.begin];
  --machine().alive.registrations;
  ranges.erase(found);
  return ncclSuccess;
}

}  // namespace

namespace isoscale::standin {

void forget_registrations(Ring& ring) {
  while (!ring.windows.empty()) remove(ring.windows, ring.windows.begin()->first);
  while (!ring.buffers.empty()) remove(ring.buffers, ring.buffers.begin()->first);
}

}  // namespace isoscale::standin

ncclResult_t ncclMemAlloc(void** to, std::size_t bytes) {
  *to = machine().memory.take(bytes, Kind::nccl, machine().settings.gpu_memory);
  return *to == nullptr ? ncclUnhandledCudaError : ncclSuccess;
}

ncclResult_t ncclMemFree(void* memory) {
  if (!machine().memory.holds(memory, 1, Kind::nccl)) return ncclInvalidArgument;
  if (known()[memory] > 0) return ncclInvalidUsage;
  static_cast<void>(drain());
  return machine().memory.give_back(memory) ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclCommRegister(ncclComm_t communicator, void* memory, std::size_t bytes,
                              void** handle) {
  if (!machine().memory.holds(memory, bytes)) return ncclInvalidArgument;
  const char* const setting = std::getenv("NCCL_LOCAL_REGISTER");
  if (setting != nullptr && setting == std::string_view{"0"}) return ncclSuccess;
  *handle = add(communicator->ring->buffers, {static_cast<std::byte*>(memory), bytes});
  return ncclSuccess;
}

ncclResult_t ncclCommDeregister(ncclComm_t communicator, void* handle) {
  return remove(communicator->ring->buffers, handle);
}

/// Collective: all ranks give as much.
ncclResult_t ncclCommWindowRegister(ncclComm_t communicator, void* memory, std::size_t bytes,
                                    ncclWindow_t* window, int flags) {
  Ring& ring = *communicator->ring;
  const bool is_sound = machine().memory.holds(memory, bytes, Kind::nccl) &&
                        bytes % NCCL_WIN_REQUIRED_ALIGNMENT == 0 &&
                        flags == NCCL_WIN_COLL_SYMMETRIC;
  std::array<unsigned long, 2> extremes{bytes, ~bytes};
  MPI_Allreduce(MPI_IN_PLACE, extremes.data(), 2, MPI_UNSIGNED_LONG, MPI_MAX, ring.mpi);
  if (!is_sound || extremes[0] != ~extremes[1]) return ncclInvalidArgument;
  *window = nullptr;
  // From 2.28 on it is a window all the same, but of this rank alone.
  const bool is_null = machine().settings.nccl < NCCL_VERSION(2, 28, 0);
  if (!machine().settings.makes_windows && is_null) return ncclSuccess;
  *window = static_cast<ncclWindow_t>(add(ring.windows, {static_cast<std::byte*>(memory), bytes}));
  if (machine().settings.makes_windows) rings()[*window] = communicator->ring;
  return ncclSuccess;
}

/// Device communicators without resources, and what is to be known before one is made.
ncclResult_t ncclDevCommCreate(ncclComm_t communicator,
                               const ncclDevCommRequirements_t* requirements, ncclDevComm_t* made) {
  if (machine().settings.nccl >= NCCL_VERSION(2, 29, 0))
    return ncclInvalidUsage;  // no magic number
  if (!machine().settings.makes_windows) return ncclInvalidUsage;
  if (machine().settings.mapped_ranks != 0) return ncclInternalError;  // no network for kernels
  if (requirements->lsaBarrierCount != 0 || requirements->ginContextCount != 0) {
    return ncclInvalidArgument;
  }
  MPI_Barrier(communicator->ring->mpi);
  made->nRanks = communicator->ring->size;
  ++machine().alive.registrations;
  return ncclSuccess;
}

ncclResult_t ncclDevCommDestroy(ncclComm_t communicator, const ncclDevComm_t* made) {
  if (made->nRanks != communicator->ring->size) return ncclInvalidArgument;
  --machine().alive.registrations;
  return ncclSuccess;
}

namespace isoscale::standin {

/// The beginning of what NCCL 2.29 has.
struct Properties {
  std::size_t size;
  unsigned magic, version;
  int attributes[4];
  bool device_api, multicast;
};
ncclResult_t query_properties(ncclComm_t communicator,
                              Properties* properties) __asm__("ncclCommQueryProperties");

ncclResult_t query_properties(ncclComm_t communicator, Properties* properties) {
  const int running = machine().settings.nccl;
  if (running < NCCL_VERSION(2, 29, 0) || properties->magic != 0xcafebeef) return ncclInvalidUsage;
  if (static_cast<int>(properties->version) > running) return ncclInvalidUsage;
  properties->attributes[0] = communicator->ring->rank;
  properties->device_api = machine().settings.makes_windows;
  return ncclSuccess;
}

}  // namespace isoscale::standin

/// Which ranks reach each other's memory.
ncclTeam_t ncclTeamLsa(ncclComm_t communicator) {
  const Ring& ring = *communicator->ring;
  const int many =
      machine().settings.mapped_ranks == 0 ? ring.size : machine().settings.mapped_ranks;
  return {.nRanks = many, .rank = ring.rank % many, .stride = 1};
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t communicator, ncclWindow_t window) {
  return remove(communicator->ring->windows, window);
}

namespace isoscale::standin {
namespace {

using executor::cuda::put_slots;
using executor::cuda::PutCall;
using executor::cuda::PutChannel;
using executor::cuda::PutMessage;

/// A window of a communicator; of none when nobody knows it.
struct Window {
  std::shared_ptr<Ring> ring{};
  Range range{};
};
Window window_of(void* handle) {
  const auto found = rings().find(handle);
  const std::shared_ptr<Ring> ring = found == rings().end() ? nullptr : found->second.lock();
  if (ring == nullptr || !ring->windows.contains(handle)) return {};
  return {.ring = ring, .range = ring->windows.at(handle)};
}

/// A receiver stores this at its sender.
struct Ready {
  std::uint64_t number = 0, place = 0;
  std::uint64_t channel = 0;  ///< where in the sender's window
};

class Puts final : public Work {
 public:
  explicit Puts(const PutCall& call) : call_(call) {}

  bool run() override {
    if (*call_.stop != 0) return true;
    for (std::size_t i = 0; !has_begun_ && i < count(); ++i) {
      const Window window = window_of(message(i).window);
      if (window.ring == nullptr) throw Fault{};
      // Not before its turn, where the test lets the communicator fail.
      if (window.ring->failing && window.ring->finished >= machine().settings.failing_after) {
        return false;
      }
    }
    if (!has_begun_) begin();
    bool all_done = true;
    for (std::size_t i = 0; i < count(); ++i) all_done = advance(i) && all_done;
    if (!all_done) return false;
    end();
    return true;
  }
  [[nodiscard]] WorkPointer again() const override { return std::make_shared<Puts>(call_); }

 private:
  /// Each message has a state: the word that its sender waits for comes first, then its bytes.
  struct State {
    std::shared_ptr<Ring> ring{};
    Ready ready{};
    MPI_Request request = MPI_REQUEST_NULL, answer = MPI_REQUEST_NULL;
    bool has_answered = false;
  };

  [[nodiscard]] std::size_t count() const { return call_.receives + call_.sends; }
  [[nodiscard]] const PutMessage& message(std::size_t i) const { return call_.messages[i]; }
  [[nodiscard]] bool receives(std::size_t i) const { return i < call_.receives; }
  [[nodiscard]] std::uint64_t number(std::size_t i) const {
    const PutChannel& channel = *message(i).channel;
    return (receives(i) ? channel.received : channel.sent) + message(i).number + 1;
  }
  /// Above those of NCCL's own messages.
  [[nodiscard]] int tag(std::size_t i, int kind) const {
    return (1 << 14) + kind * static_cast<int>(put_slots) + static_cast<int>(number(i) % put_slots);
  }
  /// A place in this rank's window.
  static void require_within(const Window& window, const void* at, std::uint64_t bytes) {
    if (!window.range.holds(at, bytes)) throw Fault{};
  }

  void begin() {
    has_begun_ = true;
    states_.resize(count());
    for (std::size_t i = 0; i < count(); ++i) {
      const PutMessage& one = message(i);
      const Window window = window_of(one.window);
      require_within(window, one.channel, sizeof(PutChannel));
      require_reachable(one.data, one.bytes);
      State& state = states_[i];
      state.ring = window.ring;
      const auto bytes = static_cast<int>(one.bytes);
      if (!receives(i)) {
        MPI_Irecv(&state.ready, sizeof state.ready, MPI_BYTE, one.peer, tag(i, 0), state.ring->mpi,
                  &state.answer);
        continue;
      }
      std::byte* const place = window.range.begin + one.place;
      require_within(window, place, one.bytes);
      state.ready = {.number = number(i), .place = one.place, .channel = one.peer_channel};
      MPI_Isend(&state.ready, sizeof state.ready, MPI_BYTE, one.peer, tag(i, 0), state.ring->mpi,
                &state.answer);
      MPI_Irecv(place, bytes, MPI_BYTE, one.peer, tag(i, 1), state.ring->mpi, &state.request);
    }
  }

  bool advance(std::size_t i) {
    State& state = states_[i];
    int done = 0;
    MPI_Test(&state.answer, &done, MPI_STATUS_IGNORE);
    if (done == 0) return false;
    if (!receives(i) && !state.has_answered) {
      state.has_answered = true;
      const PutMessage& one = message(i);
      const Window window = window_of(one.window);
      const auto* const channel = reinterpret_cast<const std::byte*>(one.channel);
      const bool is_mine = window.range.begin + state.ready.channel == channel;
      if (!is_mine || state.ready.number != number(i)) throw Fault{};
      // Windows are alike on all ranks.
      require_within(window, window.range.begin + state.ready.place, one.bytes);
      MPI_Issend(one.data, static_cast<int>(one.bytes), MPI_BYTE, one.peer, tag(i, 1),
                 state.ring->mpi, &state.request);
      ++machine().puts;
    }
    MPI_Test(&state.request, &done, MPI_STATUS_IGNORE);
    return done != 0;
  }

  void end() {
    for (std::size_t i = 0; i < count(); ++i) {
      if (message(i).number != 0) continue;
      PutChannel& channel = *message(i).channel;
      (receives(i) ? channel.received : channel.sent) += message(i).of_channel;
    }
  }

  PutCall call_;
  std::vector<State> states_;
  bool has_begun_ = false;
};

}  // namespace
}  // namespace isoscale::standin

namespace isoscale::executor::cuda {

cudaError_t start(const PutCall& call, cudaStream_t stream) {
  if (call.receives + call.sends == 0) return cudaSuccess;
  standin::submit(stream, std::make_shared<standin::Puts>(call));
  return cudaSuccess;
}

}  // namespace isoscale::executor::cuda
