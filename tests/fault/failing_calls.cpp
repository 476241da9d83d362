// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "tests/fault/failing_calls.hpp"

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string_view>
#include <vector>

#include "tests/fault/interposed.hpp"

namespace isoscale::fault {

struct Entry {
  std::array<char, 48> name{};
  std::atomic<int> calls{0};
};

namespace {

constexpr std::size_t most_entries = 512;

/// Lies in memory that forked processes share.
struct State {
  std::atomic_flag adding;
  std::atomic<std::size_t> entries{0};
  std::array<Entry, most_entries> entry;
  std::atomic<bool> counts{false};
  std::atomic<Entry*> failing{nullptr};
  std::atomic<int> nth{0}, error{0}, failed{0};
  std::atomic<Times> times{Times::once};
  /// Until this function has been called so often none of the failing one is counted.
  std::atomic<Entry*> after{nullptr};
  std::atomic<int> after_nth{0};
};

State& state() {
  static State* const state = [] {
    void* const memory =
        mmap(nullptr, sizeof(State), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    return new (memory) State;
  }();
  return *state;
}

/// Found or added.
Entry& entry_named(std::string_view name) {
  State& all = state();
  while (all.adding.test_and_set()) {
  }
  std::size_t at = 0;
  while (at < all.entries && name != all.entry[at].name.data()) ++at;
  if (at == most_entries || name.size() >= all.entry[at].name.size()) std::abort();
  if (at == all.entries) {
    name.copy(all.entry[at].name.data(), name.size());
    ++all.entries;
  }
  all.adding.clear();
  return all.entry[at];
}

/// Where the code of a caller lies.
struct Code {
  std::uintptr_t begin = 0, end = 0;
  Caller caller = Caller::product;
};

std::optional<Caller> caller_named(std::string_view file) {
  const std::string_view name = file.substr(file.rfind('/') + 1);
  if (name.empty()) return Caller::product;  // the program itself
  if (name.starts_with("libisoscale")) return Caller::product;
  if (name.starts_with("libhdf5")) return Caller::hdf5;
  if (name.starts_with("libstdc++")) return Caller::standard_library;
  return std::nullopt;
}

/// Called for each object that is loaded. (dladdr would look for symbols, at every call.)
int add_code(dl_phdr_info* object, std::size_t /*bytes*/, void* codes) {
  const std::optional<Caller> caller = caller_named(object->dlpi_name);
  for (int i = 0; caller && i < object->dlpi_phnum; ++i) {
    const auto& part = object->dlpi_phdr[i];
    if (part.p_type != PT_LOAD) continue;
    const std::uintptr_t begin = object->dlpi_addr + part.p_vaddr;
    static_cast<std::vector<Code>*>(codes)->push_back({begin, begin + part.p_memsz, *caller});
  }
  return 0;
}

void begin(Entry* failing, const Failing& how, Entry* after = nullptr) {
  State& all = state();
  all.counts = false;
  for (std::size_t at = 0; at < all.entries; ++at) all.entry[at].calls = 0;
  all.failing = failing;
  all.nth = how.nth;
  all.error = how.error;
  all.times = how.times;
  all.after = after;
  all.after_nth = how.after_nth;
  all.failed = 0;
  all.counts = true;
}

}  // namespace

std::optional<Caller> caller_at(const void* address) {
  if (!state().counts) return std::nullopt;
  static const std::vector<Code> all = [] {
    std::vector<Code> found;
    dl_iterate_phdr(add_code, &found);
    return found;
  }();
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const auto code = std::ranges::find_if(
      all, [&](const Code& part) { return at >= part.begin && at < part.end; });
  return code == all.end() ? std::nullopt : std::optional{code->caller};
}

Entry& entry_of(const char* function, Caller caller) {
  static constexpr std::array<std::string_view, callers> whose{"", "@libhdf5", "@libstdc++"};
  return entry_named(std::string{function}.append(whose[static_cast<std::size_t>(caller)]));
}

std::optional<int> failing_now(Entry& entry) {
  State& all = state();
  if (!all.counts) return std::nullopt;
  if (all.failing == &entry && all.after != nullptr) return std::nullopt;
  const int call = ++entry.calls;
  if (all.after == &entry && call == all.after_nth) all.after = nullptr;
  if (all.failing != &entry) return std::nullopt;
  if (call != all.nth && (all.times == Times::once || call < all.nth)) return std::nullopt;
  ++all.failed;
  while (all.error == stuck) pause();
  return all.error;
}

void count() { begin(nullptr, {}); }

void fail(const Failing& failing) {
  begin(&entry_named(failing.call), failing,
        failing.after.empty() ? nullptr : &entry_named(failing.after));
}

void stop() { state().counts = false; }

std::map<std::string, int> calls() {
  const State& all = state();
  std::map<std::string, int> calls;
  for (std::size_t at = 0; at < all.entries; ++at) {
    if (all.entry[at].calls > 0) calls[all.entry[at].name.data()] = all.entry[at].calls;
  }
  return calls;
}

int failed() { return state().failed; }

}  // namespace isoscale::fault
