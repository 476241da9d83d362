// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/memory.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>

#include "base/error.hpp"
#include "executor/cuda/check.hpp"
#include "units/text.hpp"

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

/// `allocate(void**, bytes)` as the CUDA runtime has it.
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

Arenas::Arenas(const std::array<std::uint64_t, program::space_count>& bytes) {
  const auto of = [&](program::Space space) {
    return units::Bytes{bytes[static_cast<std::size_t>(space)]};
  };
  if (of(program::Space::symmetric).value() != 0) {
    throw base::Error("symmetric buffers need a transport that this executor does not have");
  }
  device_ = allocate_device(of(program::Space::device));
  managed_.reset(allocate(of(program::Space::managed), "managed",
                          [](void** to, std::size_t size) { return cudaMallocManaged(to, size); }));
  pinned_.reset(allocate(of(program::Space::pinned), "pinned host",
                         [](void** to, std::size_t size) { return cudaMallocHost(to, size); }));
  if (const std::size_t size = of(program::Space::pageable).value(); size > 0) {
    pageable_.reset(std::aligned_alloc(page, (size + page - 1) / page * page));
    if (!pageable_) refuse(units::Bytes{size}, "host");
    std::memset(pageable_.get(), 0, size);  // takes the pages now, not while steps are timed
  }
}

ArenaPointers Arenas::pointers() const {
  ArenaPointers result{};
  const auto set = [&](program::Space space, void* pointer) {
    result[static_cast<std::size_t>(space)] = static_cast<std::byte*>(pointer);
  };
  set(program::Space::device, device_.get());
  set(program::Space::managed, managed_.get());
  set(program::Space::pinned, pinned_.get());
  set(program::Space::pageable, pageable_.get());
  return result;
}

void Arenas::abandon() noexcept {
  static_cast<void>(device_.release());
  static_cast<void>(managed_.release());
  static_cast<void>(pinned_.release());
  static_cast<void>(pageable_.release());
}

void Arenas::FreeTraits::free(type pointer) noexcept { std::free(pointer); }

Memory::Memory(const program::RankProgram& program, const mesh::Shape& mesh, int rank)
    : arenas(program.arena_bytes), resolver(table, mesh, rank, arenas.pointers()) {
  table.buffers = program.buffers;
  table.arena_bytes = program.arena_bytes;
}

}  // namespace isoscale::executor::cuda
