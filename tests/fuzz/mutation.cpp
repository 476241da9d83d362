// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "tests/fuzz/mutation.hpp"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <system_error>

namespace isoscale::fuzz {
namespace {

/// Where comparisons and additions turn around.
constexpr std::array<std::uint64_t, 10> edges{
    0, 1, 0x7f, 0xff, 0x7fff, 0xffff, 0x7fffffff, 0xffffffff, INT64_MAX, UINT64_MAX};

void limit(__rlimit_resource resource, std::uint64_t value) {
  const rlimit limited{.rlim_cur = value, .rlim_max = value};
  static_cast<void>(setrlimit(resource, &limited));
}

void take_limits() {
  constexpr std::uint64_t memory = std::uint64_t{4} << 30U;
  constexpr unsigned cpu_time = 120, wall_time = 600;
  std::uint64_t pages_in_use = 0;
  std::ifstream{"/proc/self/statm"} >> pages_in_use;
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_CPU, cpu_time);
  limit(RLIMIT_AS, pages_in_use * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) + memory);
  alarm(wall_time);
}

}  // namespace

int status_of(const std::function<int()>& work) {
  std::fflush(stdout);
  const pid_t process = fork();
  if (process == 0) {
    take_limits();
    const int result = work();
    std::fflush(stdout);
    _exit(result);
  }
  int status = 0;
  if (process < 0 || waitpid(process, &status, 0) != process) {
    throw std::system_error(errno, std::generic_category(), "fork");
  }
  constexpr int of_signals = 128;
  return WIFSIGNALED(status) ? of_signals + WTERMSIG(status) : WEXITSTATUS(status);
}

std::string content_of(const std::filesystem::path& file) {
  std::ifstream in{file, std::ios::binary};
  return {std::istreambuf_iterator<char>{in}, {}};
}

Mutator::Mutator(std::uint64_t seed, std::uint64_t item)
    : random_(seed * 0x9e3779b97f4a7c15U + item) {
  random_.discard(8);
}

std::size_t Mutator::below(std::size_t end) { return end == 0 ? 0 : random_() % end; }

std::uint64_t Mutator::number() { return random_() >> below(64); }

void Mutator::overwrite(std::string& bytes, std::size_t at, std::size_t size) {
  const std::size_t from = below(bytes.size() - size + 1);
  const std::size_t how = below(4);
  const std::string copied = bytes.substr(from, size);
  for (std::size_t i = 0; i < size; ++i) {
    bytes[at + i] = how == 0   ? '\0'
                    : how == 1 ? '\xff'
                    : how == 2 ? static_cast<char>(random_())
                               : copied[i];
  }
}

void Mutator::put_number(std::string& bytes, std::size_t at) {
  const std::uint64_t value = below(2) == 0 ? edges[below(edges.size())] + below(3) - 1 : number();
  const std::size_t width = std::min(std::size_t{1} << below(4), bytes.size() - at);
  std::memcpy(bytes.data() + at, &value, width);
}

void Mutator::damage_once(std::string& bytes) {
  if (bytes.empty()) {
    bytes.push_back(static_cast<char>(random_()));
    return;
  }
  const std::size_t at = below(bytes.size());
  const std::size_t most = std::min<std::size_t>(bytes.size() - at, std::size_t{1} << below(13));
  const std::size_t size = 1 + below(most);
  const std::size_t how = below(10);
  if (how < 3) {
    bytes[at] = static_cast<char>(bytes[at] ^ (1U << below(8)));
  } else if (how == 3) {
    bytes[at] = static_cast<char>(random_());
  } else if (how == 4) {
    overwrite(bytes, at, size);
  } else if (how < 7) {
    put_number(bytes, at);
  } else if (how == 7) {
    bytes.erase(at, size);
  } else if (how == 8) {
    bytes.insert(at, bytes.substr(below(bytes.size()), size));
  } else {
    bytes.resize(at);
  }
}

void Mutator::damage(std::string& bytes) {
  for (std::size_t times = 1 + below(4); times > 0; --times) damage_once(bytes);
}

}  // namespace isoscale::fuzz
