// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "tests/fuzz/fork_pool.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <numeric>
#include <optional>

#include "base/error.hpp"
#include "base/forked_work.hpp"

namespace isoscale::fuzz {
namespace {

using base::Answer;

using Work = std::function<std::string(std::size_t)>;

/// A forked copy of this process, the items that it takes in turn, and the file of its answers.
struct Worker {
  std::vector<std::size_t> items{};
  std::unique_ptr<std::FILE, decltype(&std::fclose)> answers{std::tmpfile(), &std::fclose};
  pid_t process = -1;
};

void start(Worker& worker, const Work& answer) {
  if (!worker.answers) throw base::Error("there is no place for the answers of a process");
  worker.process = fork();
  if (worker.process < 0) throw base::Error("the system gives no process");
  if (worker.process > 0) return;
  for (const std::size_t item : worker.items) {
    const std::string text = answer(item);
    std::fprintf(worker.answers.get(), "%zu\n", text.size());
    std::fwrite(text.data(), 1, text.size(), worker.answers.get());
    std::fflush(worker.answers.get());
  }
  _exit(0);  // skips the exit handlers and buffers that the copy has inherited
}

/// The next answer in a file; none where the process ended before it was written.
std::optional<std::string> next_answer(std::FILE* file) {
  std::size_t length = 0;
  if (std::fscanf(file, "%zu", &length) != 1 || std::fgetc(file) != '\n') return std::nullopt;
  std::string text(length, '\0');
  if (std::fread(text.data(), 1, length, file) != length) return std::nullopt;
  return text;
}

/// Stores the worker's answers and returns the items that it did not start.
std::vector<std::size_t> collect(const Worker& worker, std::vector<Answer>& answers) {
  const std::string ended = base::end_of(worker.process);
  std::rewind(worker.answers.get());
  for (auto item = worker.items.begin(); item != worker.items.end(); ++item) {
    answers[*item].text = next_answer(worker.answers.get());
    if (answers[*item].text) continue;
    answers[*item].ended = ended;
    return {item + 1, worker.items.end()};
  }
  return {};
}

}  // namespace

std::vector<Answer> answer_apart(std::size_t items, std::size_t processes, const Work& answer) {
  std::vector<Answer> answers(items);
  std::vector<std::size_t> left(items);
  std::iota(left.begin(), left.end(), std::size_t{0});
  while (!left.empty()) {  // each round answers or gives up one item of each worker at least
    std::vector<Worker> workers(std::min(processes, left.size()));
    for (std::size_t i = 0; i < left.size(); ++i) {
      workers[i % workers.size()].items.push_back(left[i]);
    }
    for (Worker& worker : workers) start(worker, answer);
    left.clear();
    for (const Worker& worker : workers) {
      const std::vector<std::size_t> of_worker = collect(worker, answers);
      left.insert(left.end(), of_worker.begin(), of_worker.end());
    }
  }
  return answers;
}

}  // namespace isoscale::fuzz
