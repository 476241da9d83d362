// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/memory.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/warn.hpp"
#include "units/quantity_text.hpp"

namespace isoscale::executor::cuda {
namespace {

constexpr std::size_t page = 4096;

[[noreturn]] void refuse(units::Bytes need, const char* kind) {
  std::size_t free = 0, total = 0;
  const bool known = cudaMemGetInfo(&free, &total) == cudaSuccess;
  throw base::Error(fmt::format(
      "not enough {} memory: this rank needs {} in one piece{}: use a smaller model, batch or "
      "microbatch, or more tp or pp",
      kind, units::format(need),
      known ? fmt::format(", and {} of {} are free on its GPU", units::format(units::Bytes{free}),
                          units::format(units::Bytes{total}))
            : ""));
}

/// Allocates memory by calling `function`, which has the parameters of cudaMalloc (void**, bytes).
/// Returns null for 0 bytes. Throws base::Error if there is not enough memory.
template <class Allocate>
void* allocate(units::Bytes bytes, const char* kind, const Allocate& function) {
  if (bytes.value() == 0) return nullptr;
  void* memory = nullptr;
  const cudaError_t status = function(&memory, bytes.value());
  if (status == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    refuse(bytes, kind);
  }
  check(status);
  return memory;
}

constexpr std::uint64_t window_alignment = 4096;  // bytes; NCCL requires it of windows

constexpr auto symmetric = static_cast<std::size_t>(program::Space::symmetric);

std::uint64_t rounded_up(std::uint64_t bytes, std::uint64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

/// Returns the size of the symmetric arena for the programs' buffers: the largest need of any rank,
/// so that it is the same on all ranks, rounded up to the alignment of windows.
std::uint64_t symmetric_bytes(const program::ProgramSet& set) {
  std::uint64_t bytes = 0;
  for (const program::RankProgram& program : set.programs) {
    bytes = std::max(bytes, program.arena_bytes[symmetric]);
  }
  return rounded_up(bytes, window_alignment);
}

std::array<std::uint64_t, program::space_count> arena_bytes(const program::ProgramSet& set,
                                                            int rank, units::Bytes behind) {
  auto bytes = set.of(rank).arena_bytes;
  bytes[symmetric] = symmetric_bytes(set) + rounded_up(behind.value(), window_alignment);
  return bytes;
}

}  // namespace

DeviceMemory allocate_device(units::Bytes bytes) {
  DeviceMemory memory{
      allocate(bytes, "GPU", [](void** to, std::size_t size) { return cudaMalloc(to, size); })};
  if (memory) {
    check(cudaMemset(memory.get(), 0, bytes.value()));
    check(cudaDeviceSynchronize());
  }
  return memory;
}

Arenas::NcclMemory Arenas::allocate_nccl(units::Bytes bytes) {
  if (bytes.value() == 0) return {};
  void* memory = nullptr;
  const ncclResult_t result = take_memory(&memory, bytes.value());
  if (result != ncclSuccess) {
    static_cast<void>(cudaGetLastError());
    std::size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total));
    if (free < bytes.value()) refuse(bytes, "GPU");
    check(result);
  }
  NcclMemory owned{memory};
  check(cudaMemset(memory, 0, bytes.value()));
  check(cudaDeviceSynchronize());
  return owned;
}

Arenas::Arenas(const std::array<std::uint64_t, program::space_count>& bytes,
               Registration registration)
    : bytes_(bytes) {
  const auto of = [&](program::Space space) {
    return units::Bytes{bytes[static_cast<std::size_t>(space)]};
  };
  if (!has_windows() && of(program::Space::symmetric).value() != 0) {
    throw Unsupported("symmetric windows came with NCCL 2.27: this one is older");
  }
  if (!has_registration() && registration != Registration::none) {
    throw Unsupported("registered memory came with NCCL 2.19: this one is older");
  }
  symmetric_ = allocate_nccl(of(program::Space::symmetric));
  if (registration == Registration::local) {
    registered_ = allocate_nccl(of(program::Space::device));
  } else {
    device_ = allocate_device(of(program::Space::device));
  }
  managed_.reset(allocate(of(program::Space::managed), "managed",
                          [](void** to, std::size_t size) { return cudaMallocManaged(to, size); }));
  pinned_.reset(allocate(of(program::Space::pinned), "pinned host",
                         [](void** to, std::size_t size) { return cudaMallocHost(to, size); }));
  if (const std::size_t size = of(program::Space::pageable).value(); size > 0) {
    pageable_.reset(std::aligned_alloc(page, rounded_up(size, page)));
    if (!pageable_) refuse(units::Bytes{size}, "host");
    std::memset(pageable_.get(), 0, size);  // allocates the pages now, not in timed steps
  }
  const auto set = [&](program::Space space, void* memory) {
    pointers_[static_cast<std::size_t>(space)] = static_cast<std::byte*>(memory);
  };
  set(program::Space::device, registered_ ? registered_.get() : device_.get());
  set(program::Space::symmetric, symmetric_.get());
  set(program::Space::managed, managed_.get());
  set(program::Space::pinned, pinned_.get());
  set(program::Space::pageable, pageable_.get());
}

units::Bytes Arenas::bytes() const {
  return units::Bytes{std::accumulate(bytes_.begin(), bytes_.end(), std::uint64_t{0})};
}

void Arenas::abandon() noexcept {
  abandon_all(device_, managed_, registered_, symmetric_, pinned_, pageable_);
}

Memory::Memory(const program::ProgramSet& set, int rank, Registration registration,
               units::Bytes behind)
    : arenas(arena_bytes(set, rank, behind), registration),
      resolver(set.of(rank), set.mesh, rank, arenas.pointers()),
      symmetric_end(symmetric_bytes(set)) {}

Registrations::Registrations(const program::ProgramSet& set, const Communicators& communicators,
                             const Arenas& arenas, Registration registration)
    : Registrations() {  // delegates, so that the destructor runs if the body throws
  try {
    if (const auto arena = arenas[program::Space::symmetric]; !arena.empty()) {
      for (const ncclComm_t one : communicators.touching(set, program::Space::symmetric)) {
        NcclWindow window = nullptr;
        check(add_window(one, arena.data(), arena.size(), window));
        // NCCL 2.27 returns a null window if this machine lacks something that windows need.
        if (window == nullptr) throw Unsupported("NCCL makes no symmetric windows on this machine");
        windows_.emplace_back(one, window);
      }
    }
    const auto arena = arenas[program::Space::device];
    if (registration != Registration::local || arena.empty()) return;
    for (const ncclComm_t one : communicators.all()) {
      void* handle = nullptr;
      check(add_memory(one, arena.data(), arena.size(), handle));
      if (handle == nullptr) {
        throw Unsupported(
            "NCCL registers no memory here: NCCL_LOCAL_REGISTER is 0, or NCCL_P2P_USE_CUDA_MEMCPY "
            "is 1");
      }
      buffers_.emplace_back(one, handle);
    }
  } catch (const NcclRefusal& refusal) {
    throw Unsupported(fmt::format("NCCL does not register memory here: {}", refusal.what()));
  }
}

Registrations::~Registrations() {
  try {
    close();
  } catch (const base::Error& error) {
    base::warn(
        fmt::format("isoscale: warning: while registered memory was given back: {}", error.what()));
  }
}

Registrations::Registrations(Registrations&& other) noexcept { *this = std::move(other); }

Registrations& Registrations::operator=(Registrations&& other) noexcept {
  std::swap(windows_, other.windows_);
  std::swap(buffers_, other.buffers_);
  return *this;
}

NcclWindow Registrations::window(ncclComm_t communicator) const {
  const auto found = std::ranges::find_if(
      windows_, [&](const auto& entry) { return entry.first == communicator; });
  return found == windows_.end() ? nullptr : found->second;
}

void Registrations::close() {
  // Each entry is removed from the list before it is undone, so that a failed one is not tried
  // again.
  const auto undo = [](auto& entries, const auto& remove) {
    while (!entries.empty()) {
      const auto [communicator, handle] = entries.back();
      entries.pop_back();
      check(remove(communicator, handle));
    }
  };
  undo(windows_, remove_window);
  undo(buffers_, remove_memory);
}

void Registrations::abandon() noexcept {
  windows_.clear();
  buffers_.clear();
}

}  // namespace isoscale::executor::cuda
