// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/host/resources.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <system_error>

#include "base/error.hpp"
#include "machine/procfs_and_cgroups.hpp"
#include "units/quantity_text.hpp"

namespace isoscale::executor::host {

std::string kernel_warning(std::string_view core, Vectors vectors) {
  // These are OpenBLAS's names for its x86 kernels without AVX2.
  static constexpr std::array<std::string_view, 14> old{
      "Prescott", "Core2",  "Penryn",    "Dunnington", "Nehalem",   "Sandybridge", "Atom",
      "Opteron",  "Athlon", "Barcelona", "Bobcat",     "Bulldozer", "Piledriver",  "Steamroller"};
  if (vectors == Vectors::unknown || std::ranges::find(old, core) == old.end()) return {};
  return fmt::format(
      "OpenBLAS does not know this CPU and multiplies with its {} kernels, several times slower "
      "than the CPU can: set OPENBLAS_CORETYPE={}, or use a newer OpenBLAS",
      core, vectors == Vectors::avx512 ? "SkylakeX" : "Haswell");
}

int cores_of_rank(int allowed, int on_node, int ranks_on_node, std::optional<double> quota) {
  const int ranks = std::max(1, ranks_on_node);
  const int share = std::max(1, on_node / ranks);
  const int cores = allowed > share ? allowed / ranks : allowed;
  // A quota may exceed the range of int, so the smaller of the two numbers is chosen before the
  // conversion to int.
  const double granted = quota ? std::floor(*quota / ranks) : cores;
  return std::max(1, static_cast<int>(std::min<double>(cores, granted)));
}

int cores_of_this_rank(int ranks_on_node) {
  const int on_node = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  cpu_set_t mask;
  // The call fails on machines with more CPUs than `mask` can hold. The rank is then assumed to be
  // allowed on all CPUs of the node.
  const int allowed = sched_getaffinity(0, sizeof mask, &mask) == 0 ? CPU_COUNT(&mask) : on_node;
  return cores_of_rank(allowed, on_node, ranks_on_node, machine::cpu_limit(machine::read_file));
}

void MappingTraits::free(type mapping) noexcept { munmap(mapping.address, mapping.bytes); }

Storage allocate(units::Bytes bytes) {
  if (bytes.value() == 0) return {};
  void* const address =
      mmap(nullptr, bytes.value(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) {
    const int code = errno;
    const auto left = machine::memory_available(machine::read_file);
    throw base::Error(
        fmt::format("cannot allocate {} of memory for this rank ({}); {} free on its node: use a "
                    "smaller model or batch, or fewer ranks per node",
                    units::format(bytes), std::generic_category().message(code),
                    left ? units::format(*left) : "unknown"));
  }
  Storage storage{{.address = static_cast<std::byte*>(address), .bytes = bytes.value()}};
  // Ask for large pages. A failure is ignored, since large pages only make access faster.
  madvise(address, bytes.value(), MADV_HUGEPAGE);
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  for (std::size_t i = 0; i < bytes.value(); i += page) {
    *static_cast<volatile std::byte*>(storage.get().address + i) = std::byte{0};
  }
  return storage;
}

}  // namespace isoscale::executor::host
