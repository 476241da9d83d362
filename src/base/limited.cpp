// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "base/limited.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <string>
#include <system_error>

#include "base/child.hpp"
#include "base/error.hpp"

namespace isoscale::base {
namespace {

using Clock = std::chrono::steady_clock;

/// Addresses that this process uses, in bytes; 0 when the system does not say.
std::uint64_t addresses_in_use() {
  std::uint64_t pages = 0;
  std::ifstream{"/proc/self/statm"} >> pages;
  return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

/// Lowers a limit; one that is lower already stays. The hard limit stands one above the other:
/// where both are equal, a process that uses up its time is killed and cannot be told from others.
void limit(__rlimit_resource resource, std::uint64_t value) {
  struct rlimit now {};
  if (getrlimit(resource, &now) != 0) return;
  now.rlim_cur = std::min<rlim_t>(now.rlim_cur, value);
  now.rlim_max = std::min<rlim_t>(now.rlim_max, value + 1);
  static_cast<void>(setrlimit(resource, &now));
}

void take_limits(const Limits& limits) {
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_CPU, static_cast<std::uint64_t>(limits.cpu_time.count()));
  limit(RLIMIT_FSIZE, limits.memory.value());
  if (const std::uint64_t in_use = addresses_in_use(); in_use > 0) {
    limit(RLIMIT_AS, in_use + limits.memory.value());
  }
}

/// The life of the copy. A handler that it has inherited would act for the whole program.
[[noreturn]] void live(int pipe, const Limits& limits,
                       const std::function<std::string()>& answer) noexcept {
  for (const int signal :
       {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGXCPU, SIGXFSZ, SIGTERM, SIGINT, SIGHUP}) {
    static_cast<void>(std::signal(signal, SIG_DFL));
  }
  take_limits(limits);
  _exit(send_all(pipe, answer()) ? 0 : 1);
}

enum class Heard : std::uint8_t { all, too_much, too_late };

/// What the copy says until its end.
Heard listen(int pipe, Clock::time_point until, units::Bytes most, std::string& said) {
  std::array<char, 65536> block{};
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) return Heard::too_late;
    pollfd polled{.fd = pipe, .events = POLLIN, .revents = 0};
    constexpr decltype(left) longest_wait = 60'000;
    const int ready = poll(&polled, 1, static_cast<int>(std::min(left, longest_wait)));
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    const ssize_t got = ready < 0 ? -1 : read(pipe, block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Heard::all;
    said.append(block.data(), static_cast<std::size_t>(got));
    if (said.size() > most.value()) return Heard::too_much;
  }
}

}  // namespace

Answer answer_within(const Limits& limits, const std::function<std::string()>& answer) {
  auto [from, into] = make_pipe();
  const pid_t process = from ? fork() : -1;
  if (process < 0) {
    throw Error(fmt::format("the system gives no process of its own ({})",
                            std::generic_category().message(errno)));
  }
  if (process == 0) {
    from.reset();
    live(into.get(), limits, answer);
  }
  into.reset();
  Answer result;
  std::string said;
  const Heard heard = listen(from.get(), Clock::now() + limits.wall_time, limits.answer, said);
  if (heard != Heard::all) kill(process, SIGKILL);
  result.ended = end_of(process);
  if (heard == Heard::too_late) {
    result.ended = fmt::format("more than {} s", limits.wall_time.count());
  } else if (heard == Heard::too_much) {
    result.ended = "an endless answer";
  } else if (result.ended == "exit status 0") {
    result.ended.clear();
    result.text = std::move(said);
  } else if (result.ended == fmt::format("signal {}", SIGXCPU)) {
    result.ended = fmt::format("more than {} s of CPU time", limits.cpu_time.count());
  }
  return result;
}

}  // namespace isoscale::base
