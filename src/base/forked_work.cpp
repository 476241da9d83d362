// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "base/forked_work.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "base/handle.hpp"

namespace isoscale::base {
namespace {

struct PipeEndTraits {
  using type = int;
  static constexpr int null() { return -1; }
  static void free(int end) noexcept { (void)close(end); }
};
using PipeEnd = Handle<PipeEndTraits>;

/// The two ends of a pipe; both are empty if the system cannot open one.
struct Pipe {
  PipeEnd from, into;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return {};
  return {.from = PipeEnd{ends[0]}, .into = PipeEnd{ends[1]}};
}

/// Returns false if the reading end has been closed.
bool send_all(int pipe, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(pipe, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

/// Waits until the process has ended and says how: "signal 11", "exit status 1".
std::string end_of(pid_t process) {
  int status = 0;
  while (waitpid(process, &status, 0) < 0) {
    if (errno != EINTR) return "unknown end";
  }
  return WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status))
                             : fmt::format("exit status {}", WEXITSTATUS(status));
}

using Work = std::function<std::string(std::size_t)>;

/// A forked copy of this process and the bytes that it has sent so far: a length and a text for
/// each of its items, in order.
struct Worker {
  pid_t process = -1;
  PipeEnd from;
  std::string sent{};
  std::vector<std::size_t> items{};
};

[[noreturn]] void fail(const char* what) {
  throw Error(fmt::format("{}: {}", what, std::generic_category().message(errno)));
}

/// Answers the items in a forked copy of this process. It ends by _exit(), which skips the exit
/// handlers and buffers that the copy has inherited.
[[noreturn]] void answer_items(int pipe, std::span<const std::size_t> items,
                               const Work& answer) noexcept {
  for (const std::size_t item : items) {
    const std::string text = answer(item);
    const std::uint64_t length = text.size();
    std::array<char, sizeof length> head{};
    std::memcpy(head.data(), &length, sizeof length);
    if (!send_all(pipe, {head.data(), head.size()}) || !send_all(pipe, text)) _exit(1);
  }
  _exit(0);
}

/// Forks a copy of this process that answers the worker's items; returns false if the system cannot
/// give a process or a pipe.
bool start(Worker& worker, std::span<const Worker> before, const Work& answer) {
  auto [from, into] = make_pipe();
  if (!from) return false;
  const pid_t process = fork();
  if (process < 0) return false;
  if (process == 0) {
    // Closes the reading ends of the earlier workers' pipes: while this copy held one open, its
    // worker would not notice if the reader were gone, and could block for ever.
    for (const Worker& other : before) (void)close(other.from.get());
    from.reset();
    answer_items(into.get(), worker.items, answer);
  }
  worker.process = process;
  worker.from = std::move(from);
  return true;
}

/// Appends the next bytes that the worker has sent; returns false once the worker has closed its
/// pipe.
bool receive(Worker& worker) {
  std::array<char, 65536> block{};
  const ssize_t got = read(worker.from.get(), block.data(), block.size());
  if (got < 0 && errno != EINTR) fail("cannot read from a process of its own");
  if (got > 0) worker.sent.append(block.data(), static_cast<std::size_t>(got));
  return got != 0;
}

void receive_all(std::span<Worker> workers) {
  std::vector<Worker*> open;
  for (Worker& worker : workers) open.push_back(&worker);
  while (!open.empty()) {
    std::vector<pollfd> polled;
    for (const Worker* worker : open) {
      polled.push_back({.fd = worker->from.get(), .events = POLLIN, .revents = 0});
    }
    if (poll(polled.data(), polled.size(), -1) < 0) {
      if (errno == EINTR) continue;
      fail("cannot wait for a process of its own");
    }
    std::vector<Worker*> still;
    for (std::size_t i = 0; i < open.size(); ++i) {
      if (polled[i].revents == 0 || receive(*open[i])) still.push_back(open[i]);
    }
    open = std::move(still);
  }
}

/// Stores the worker's answers and returns the items that it did not start.
std::vector<std::size_t> collect(const Worker& worker, std::vector<Answer>& answers) {
  const std::string ended = end_of(worker.process);
  std::string_view rest = worker.sent;
  std::size_t done = 0;
  for (; done < worker.items.size(); ++done) {
    std::uint64_t length = 0;
    if (rest.size() < sizeof length) break;
    std::memcpy(&length, rest.data(), sizeof length);
    rest.remove_prefix(sizeof length);
    if (rest.size() < length) break;
    answers[worker.items[done]].text = std::string{rest.substr(0, length)};
    rest.remove_prefix(length);
  }
  if (done == worker.items.size()) return {};
  answers[worker.items[done]].ended = ended;
  return {worker.items.begin() + static_cast<std::ptrdiff_t>(done) + 1, worker.items.end()};
}

/// Distributes the items round-robin over the workers, which balances them: files of one kind often
/// follow each other.
std::vector<Worker> shared_out(std::span<const std::size_t> items, std::size_t processes) {
  std::vector<Worker> workers(std::min(processes, items.size()));
  for (std::size_t i = 0; i < items.size(); ++i) {
    workers[i % workers.size()].items.push_back(items[i]);
  }
  return workers;
}

/// Runs one round of workers; returns the items that have no answer yet, and the number of
/// processes that were started.
std::pair<std::vector<std::size_t>, std::size_t> play_round(std::span<const std::size_t> items,
                                                            std::size_t processes,
                                                            const Work& answer,
                                                            std::vector<Answer>& answers) {
  std::vector<Worker> workers = shared_out(items, processes);
  std::size_t started = 0;
  while (started < workers.size() &&
         start(workers[started], std::span{workers}.first(started), answer)) {
    ++started;
  }
  receive_all(std::span{workers}.first(started));
  std::vector<std::size_t> left;
  for (std::size_t i = 0; i < workers.size(); ++i) {
    const auto of_worker = i < started ? collect(workers[i], answers) : workers[i].items;
    left.insert(left.end(), of_worker.begin(), of_worker.end());
  }
  std::ranges::sort(left);
  return {std::move(left), started};
}

using Clock = std::chrono::steady_clock;

/// Returns the size of this process' address space in bytes; 0 if the system does not tell it.
std::uint64_t addresses_in_use() {
  std::uint64_t pages = 0;
  std::ifstream{"/proc/self/statm"} >> pages;
  return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

/// Lowers a limit of this process to `value`; a limit that is lower already stays. The hard limit
/// is one above the soft limit: if both were equal, a process that uses up its CPU time would be
/// killed by SIGKILL, which does not tell that time was the reason.
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

/// Answers under limits in a forked copy of this process. It resets the signal handlers, since an
/// inherited one would act as if it ran in the original process.
[[noreturn]] void answer_limited(int pipe, const Limits& limits,
                                 const std::function<std::string()>& answer) noexcept {
  for (const int signal :
       {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGXCPU, SIGXFSZ, SIGTERM, SIGINT, SIGHUP}) {
    static_cast<void>(std::signal(signal, SIG_DFL));
  }
  take_limits(limits);
  _exit(send_all(pipe, answer()) ? 0 : 1);
}

enum class Heard : std::uint8_t { all, too_much, too_late };

/// Collects what a forked copy sends, until it closes its pipe, until the time `until`, or until
/// there are more than `most` bytes.
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

std::vector<Answer> answer_apart(std::size_t items, std::size_t processes, const Work& answer) {
  std::vector<Answer> answers(items);
  std::vector<std::size_t> left(items);
  for (std::size_t item = 0; item < items; ++item) left[item] = item;
  while (!left.empty() && processes > 1) {
    const auto [unanswered, started] = play_round(left, processes, answer, answers);
    if (started == 0) break;
    left = unanswered;  // fewer each round: each process has answered or given up one item at least
  }
  for (const std::size_t item : left) answers[item].text = answer(item);
  return answers;
}

std::size_t usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return static_cast<std::size_t>(std::max(CPU_COUNT(&set), 1));
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
