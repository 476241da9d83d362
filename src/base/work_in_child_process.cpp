// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "base/work_in_child_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <system_error>
#include <utility>

#include "base/error.hpp"

namespace isoscale::base {
namespace {

using Clock = std::chrono::steady_clock;

/// Returns the size of this process' address space in bytes; 0 if the system does not tell it.
std::uint64_t addresses_in_use() {
  std::uint64_t pages = 0;
  std::ifstream{"/proc/self/statm"} >> pages;
  return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

/// Lowers a limit of this process to `value`; a limit that is already lower stays unchanged. The
/// hard limit is one above the soft limit: if both were equal, a process that uses up its CPU time
/// would be killed by SIGKILL, which does not tell that time was the reason.
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
  limit(RLIMIT_FSIZE, limits.memory);
  if (const std::uint64_t in_use = addresses_in_use(); in_use > 0) {
    limit(RLIMIT_AS, in_use + limits.memory);
  }
}

/// Discards the standard error of this process: the C library reports damaged memory before it
/// aborts, and the caller prints its own sentence. In builds with the address or thread sanitizer
/// nothing is discarded, so that the sanitizer's reports are visible.
void drop_errors() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const Descriptor nowhere{open("/dev/null", O_WRONLY | O_CLOEXEC)};
  if (nowhere) static_cast<void>(dup2(nowhere.get(), STDERR_FILENO));
#endif
}

/// Runs in the forked copy of this process: computes the answer under limits and sends it into the
/// pipe. It resets the signal handlers, since an inherited one would act as if it ran in the
/// original process.
[[noreturn]] void answer_limited(int pipe, const Limits& limits,
                                 const std::function<std::string()>& answer) noexcept {
  for (const int signal :
       {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGXCPU, SIGXFSZ, SIGTERM, SIGINT, SIGHUP}) {
    static_cast<void>(std::signal(signal, SIG_DFL));
  }
  take_limits(limits);
  drop_errors();
  _exit(send_all(pipe, answer()) ? 0 : 1);
}

enum class Heard : std::uint8_t { all, too_much, too_late };

/// Appends to `said` the bytes that a forked copy sends. It ends when the copy closes its pipe
/// (all), at the time `until` (too_late), or when there are more than `most` bytes (too_much).
Heard listen(int pipe, Clock::time_point until, std::uint64_t most, std::string& said) {
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
    if (said.size() > most) return Heard::too_much;
  }
}

}  // namespace

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return {};
  return {.from = Descriptor{ends[0]}, .into = Descriptor{ends[1]}};
}

bool send_all(int pipe, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(pipe, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

std::string end_of(pid_t process) {
  int status = 0;
  while (waitpid(process, &status, 0) < 0) {
    if (errno != EINTR) return "unknown end";
  }
  return WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status))
                             : fmt::format("exit status {}", WEXITSTATUS(status));
}

Answer answer_within(const Limits& limits, const std::function<std::string()>& answer) {
  auto [from, into] = make_pipe();
  const pid_t process = from ? fork() : -1;
  if (process < 0) {
    throw Error(fmt::format("the system gives no process of its own ({})",
                            std::generic_category().message(errno)));
  }
  if (process == 0) {
    from.reset();
    answer_limited(into.get(), limits, answer);
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
