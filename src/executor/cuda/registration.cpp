// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/registration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "executor/cuda/check.hpp"

namespace isoscale::executor::cuda {

Registrations::Registrations(const program::ProgramSet& set, const Communicators& communicators,
                             const Arenas& arenas, Registration registration)
    : Registrations() {  // whole from here on: what follows may throw, and is then taken back
  try {
    add_windows(communicators.touching(set, program::Space::symmetric), arenas.symmetric());
    if (registration == Registration::local) {
      add_buffers(communicators.all(), arenas.device());
    }
  } catch (const NcclRefusal& refusal) {
    throw Unsupported(fmt::format("NCCL does not register memory here: {}", refusal.what()));
  }
}

Registrations::~Registrations() {
  try {
    close();
  } catch (const base::Error& error) {
    base::warn(fmt::format("while registered memory was given back: {}", error.what()));
  }
}

Registrations::Registrations(Registrations&& other) noexcept { *this = std::move(other); }

Registrations& Registrations::operator=(Registrations&& other) noexcept {
  std::swap(windows_, other.windows_);
  std::swap(buffers_, other.buffers_);
  return *this;
}

void Registrations::add_windows(const std::vector<ncclComm_t>& communicators, const Area& area) {
  if (area.bytes == 0) return;
  for (const ncclComm_t communicator : communicators) {
    NcclWindow window = nullptr;
    check(add_window(communicator, area.memory, area.bytes, window));
    // That is how NCCL 2.27 says that this machine has not what it takes.
    if (window == nullptr) throw Unsupported("NCCL makes no symmetric windows on this machine");
    windows_.push_back({.communicator = communicator, .window = window});
  }
}

void Registrations::add_buffers(const std::vector<ncclComm_t>& communicators, const Area& area) {
  if (area.bytes == 0) return;
  for (const ncclComm_t communicator : communicators) {
    void* handle = nullptr;
    check(add_memory(communicator, area.memory, area.bytes, handle));
    buffers_.push_back({.communicator = communicator, .handle = handle});
  }
}

NcclWindow Registrations::window(ncclComm_t communicator) const {
  const auto found = std::ranges::find(windows_, communicator, &Window::communicator);
  return found == windows_.end() ? nullptr : found->window;
}

void Registrations::close() {
  // One by one out of the lists: what fails is not tried again.
  while (!windows_.empty()) {
    const Window last = windows_.back();
    windows_.pop_back();
    check(remove_window(last.communicator, last.window));
  }
  while (!buffers_.empty()) {
    const Buffer last = buffers_.back();
    buffers_.pop_back();
    check(remove_memory(last.communicator, last.handle));
  }
}

void Registrations::abandon() noexcept {
  windows_.clear();
  buffers_.clear();
}

}  // namespace isoscale::executor::cuda
