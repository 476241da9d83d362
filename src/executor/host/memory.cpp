// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/host/memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/error.hpp"
#include "machine/kernel_files.hpp"
#include "units/text.hpp"

namespace isoscale::executor::host {
namespace {

[[noreturn]] void refuse(units::Bytes bytes, int code) {
  const auto left = machine::memory_available(machine::read_file);
  throw base::Error(
      fmt::format("cannot allocate {} of memory for this rank ({}); {} free on its node: use a "
                  "smaller model or "
                  "batch, or fewer ranks per node",
                  units::format(bytes), std::generic_category().message(code),
                  left ? units::format(*left) : "unknown"));
}

}  // namespace

void MappingTraits::free(type mapping) noexcept { munmap(mapping.address, mapping.bytes); }

Storage allocate(units::Bytes bytes) {
  if (bytes.value() == 0) return {};
  void* const address =
      mmap(nullptr, bytes.value(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) refuse(bytes, errno);
  Storage storage{{.address = static_cast<std::byte*>(address), .bytes = bytes.value()}};
  // Large pages where the kernel has them: a hint, so its failure is no failure.
  madvise(address, bytes.value(), MADV_HUGEPAGE);
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  for (std::size_t i = 0; i < bytes.value(); i += page) {
    *static_cast<volatile std::byte*>(storage.get().address + i) = std::byte{0};
  }
  return storage;
}

}  // namespace isoscale::executor::host
