// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The kernel of puts, over MPI: the same rendezvous, of the same channels in the same windows.
#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "executor/cuda/kernels/kernels.hpp"
#include "tests/cuda/nccl_work.hpp"

namespace isoscale::standin {
namespace {

using executor::cuda::put_slots;
using executor::cuda::PutCall;
using executor::cuda::PutChannel;
using executor::cuda::PutMessage;

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
