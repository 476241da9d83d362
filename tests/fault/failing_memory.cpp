// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Memory that runs out: every operator new of the process, which libraries in C do not use.
#include <cstdlib>
#include <new>

#include "tests/fault/interposed.hpp"

namespace isoscale::fault {
namespace {

/// The flag keeps the allocations of the counting itself from being counted.
thread_local bool is_counting = false;

void* memory(std::size_t bytes) {
  bool fails = false;
  if (!is_counting) {
    is_counting = true;
    static Entry& entry = entry_of("operator_new", Caller::product);
    fails = failing_now(entry).has_value();
    is_counting = false;
  }
  void* const found = fails ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
  if (found == nullptr) throw std::bad_alloc{};
  return found;
}

}  // namespace
}  // namespace isoscale::fault

void* operator new(std::size_t bytes) { return isoscale::fault::memory(bytes); }
void* operator new[](std::size_t bytes) { return isoscale::fault::memory(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t /*bytes*/) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t /*bytes*/) noexcept { std::free(memory); }
