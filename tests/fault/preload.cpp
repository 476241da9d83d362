// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// These variables tell the seam what to do where it is preloaded into the whole program:
//   ISOSCALE_FAIL=call,nth,errno  this call fails, in the process of rank ISOSCALE_FAIL_RANK (0);
//                                 for errno: a number; or stick: the call never returns
//   ISOSCALE_FAIL_AFTER=call,nth  calls of ISOSCALE_FAIL are counted only from this one on
//   ISOSCALE_FAIL_COUNTS=FILE     where that process, as it ends, counts its calls
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <new>
#include <sstream>

#include "tests/fault/failing_calls.hpp"
#include "tests/fault/interposed.hpp"

namespace isoscale::fault {
namespace {

std::string variable(const char* name, std::string otherwise) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : std::move(otherwise);
}

/// Returns the rank as Open MPI, MPICH or Slurm tells it; 0 for a rank alone.
std::string own_rank() {
  return variable("OMPI_COMM_WORLD_RANK", variable("PMI_RANK", variable("SLURM_PROCID", "0")));
}

Failing asked_for(std::istringstream text) {
  Failing failing;
  std::string nth, error;
  std::getline(text, failing.call, ',');
  std::getline(text, nth, ',');
  std::getline(text, error, ',');
  failing.nth = std::atoi(nth.c_str());
  failing.error = error == "stick" ? stuck : std::atoi(error.c_str());
  return failing;
}

/// From the program's start to its end.
class Preloaded {
 public:
  Preloaded() {
    if (own_rank() != variable("ISOSCALE_FAIL_RANK", "0")) return;
    counts_ = variable("ISOSCALE_FAIL_COUNTS", "");
    const std::string asked = variable("ISOSCALE_FAIL", "");
    if (!asked.empty()) {
      Failing failing = asked_for(std::istringstream{asked});
      std::istringstream after{variable("ISOSCALE_FAIL_AFTER", "")};
      std::getline(after, failing.after, ',');
      after >> failing.after_nth;
      fail(failing);
    } else if (!counts_.empty()) {
      count();
    }
  }
  ~Preloaded() {
    stop();
    if (counts_.empty()) return;
    std::ofstream file{counts_};
    for (const auto& [call, times] : calls()) file << call << ' ' << times << '\n';
    file << "failed " << failed() << '\n';
  }
  Preloaded(const Preloaded&) = delete;
  Preloaded& operator=(const Preloaded&) = delete;

 private:
  std::string counts_;
};

const Preloaded preloaded;

// Memory can run out: every operator new of the process is defined here. Libraries in C use none.

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
