// The body of `cosmati verify`.
#include "cli/verify/verify_job.h"

#include <algorithm>

#include "cli/networks/output_files.h"
#include "cli/output/record.h"
#include "cli/output/table.h"
#include "cli/output/text.h"
#include "cli/verbs/run_job.h"
#include "cli/verify/verification.h"

namespace cosmati::cli {
namespace {

class Session {
 public:
  explicit Session(VerifyRequest const& request)
      : request_(request),
        device_(request.common.device_to_run_on()),
        options_(plan_options(*request.subject, request.common)),
        subject_(request.subject->name()) {}

  void leave_out(Task const& task, std::string const& type) {
    ++left_out_;
    if (!request_.common.json)
      table_.add({task.notes.label, type, "", "", "", "",
                  "skipped: " + in_short(task.notes.operations) + " operations"});
  }

  // Switches to the options of one problem of a suite.
  void take(VerifyRequest const& one) {
    options_ = plan_options(*one.subject, one.common);
    subject_ = one.subject->name();
  }

  // As verify(); false if the requested kernel exists but does not support this problem.
  bool verify_if_supported(Job job, std::string const& type, bool gaps, Data const& data,
                           nets::Random& random) {
    try {
      verify(std::move(job), type, gaps, data, random);
      return true;
    } catch (Error const& error) {
      auto const kernels = request_.subject->kernels(device_.backend);
      bool const exists = std::ranges::find(kernels, options_.kernel) != kernels.end();
      if (error.code() != ErrorCode::bad_request || !exists) throw;
      ++unsupported_;
      refusal_ = error.what();
      return false;
    }
  }

  void verify(Job job, std::string const& type, bool gaps, Data const& data, nets::Random& random) {
    Task& task = *job.task;
    if (gaps)
      task.visit([&](char const*, Role, TensorDescription& description) {
        if (description.layout.rank() > 1)
          description.layout =
              with_gaps(description.layout, [&random] { return draw_between(random, 0, 3); });
      });
    Verdict const verdict = verify_task(task, device_, options_, data, random);
    ++problems_;
    if (!verdict.correct) ++wrong_;
    std::string label = task.notes.label + (gaps ? " gaps" : "");
    if (data.hard != HardData::none) label += std::string(" of ") + name_of(data.hard);
    if (data.misalignment > 0) label += " misaligned by " + std::to_string(data.misalignment);
    if (request_.common.json)
      print_text(record(label, type, data, verdict).json());
    else
      table_.add({label, type, verdict.kernel, std::to_string(verdict.elements),
                  verdict.exact ? "exact" : in_short(verdict.error),
                  verdict.exact ? "-" : in_short(verdict.share_of_bound),
                  verdict.correct ? "pass" : verdict.complaint});
    print_progress(std::to_string(problems_) + " verified");
  }

  void finish() const {
    if (!request_.common.json) table_.print();
    if (problems_ == 0 && left_out_ > 0)
      throw Error(ErrorCode::bad_request, "nothing was verified: all " + std::to_string(left_out_) +
                                              " problems have more than --most-operations " +
                                              in_short(request_.max_operations));
    if (problems_ == 0 && unsupported_ > 0)
      throw Error(ErrorCode::bad_request, "nothing was verified: the kernel '" + options_.kernel +
                                              "' supports none of " + std::to_string(unsupported_) +
                                              " random problems; of the last: " + refusal_);
    if (wrong_ > 0)
      throw Error(ErrorCode::wrong_result,
                  std::to_string(wrong_) + " of " + std::to_string(problems_) + " problems failed");
    if (!request_.common.json)
      print_line(std::to_string(problems_) + (problems_ == 1 ? " problem, passed" : " problems, all passed") +
                 (left_out_ > 0 ? "; " + std::to_string(left_out_) + " skipped, with more operations than " +
                                      in_short(request_.max_operations)
                                : "") +
                 (unsupported_ > 0 ? "; " + std::to_string(unsupported_) + " more drawn, not supported by '" +
                                         options_.kernel + "'"
                                   : ""));
  }

 private:
  static char const* data_text(Data const& data) {
    return data.small_integers ? "small integers" : name_of(data.hard);
  }
  Record record(std::string const& label, std::string const& type, Data const& data,
                Verdict const& verdict) const {
    Record line;
    line.add("verb", "verify")
        .add("subject", subject_)
        .add("problem", label)
        .add("type", type)
        .add("data", data_text(data))
        .add("backend", name_of(device_.backend))
        .add("kernel", verdict.kernel)
        .add("threads", device_.threads)
        .add("gpu", device_.gpu.name.empty() ? Value() : Value(device_.gpu.name))
        .add("correct", verdict.correct)
        .add("exact", verdict.exact)
        .add("elements", static_cast<long long>(verdict.elements))
        .add("max_error", verdict.error)
        .add("max_error_of_bound", verdict.share_of_bound)
        .add("complaint", verdict.complaint.empty() ? Value() : Value(verdict.complaint));
    return line;
  }

  VerifyRequest const& request_;
  Device device_;
  PlanOptions options_;
  std::string subject_;
  Table table_{{"problem", "type", "kernel", "elements", "max error", "of bound", "verdict"}};
  long long problems_ = 0, wrong_ = 0, left_out_ = 0, unsupported_ = 0;
  std::string refusal_;  // of the last problem that the kernel does not support
};

// Chooses which problems have hard data, and of which kind, from a separate random stream, so that the
// problems themselves do not change.
class HardDraws {
 public:
  HardDraws(VerifyRequest const& request, std::string const& unless_given)
      : data_(one_of(request.data.empty() ? unless_given : request.data, {"normal", "hard", "mixed"},
                     "--data")),
        random_(static_cast<unsigned long long>(request.common.seed), 2) {}

  // If integers were requested or drawn, uses hard data only with --data hard.
  HardData next(bool integers) {
    HardData const kind = draw_hard_data(random_);
    bool const share = draw_between(random_, 0, 2) == 0;
    if (data_ == "hard") return kind;
    return data_ == "mixed" && share && !integers ? kind : HardData::none;
  }

 private:
  std::string data_;
  nets::Random random_;
};

Data data_of(bool integers, Index misalignment, HardDraws& draws) {
  HardData const hard = draws.next(integers);
  return {integers && hard == HardData::none, misalignment, hard};
}

Index checked_misalignment(VerifyRequest const& request) {
  if (request.misalignment != not_given && (request.misalignment < 0 || request.misalignment > 63))
    throw Error(ErrorCode::bad_request, "--misalign " + std::to_string(request.misalignment) +
                                            " is invalid; valid values: 0 to 63 bytes");
  return request.misalignment == not_given ? 0 : request.misalignment;
}

void verify_suite_problem(Session& session, VerifyRequest const& request, Index misalignment, HardDraws& hard,
                          nets::Random& random) {
  for (std::string const& type : requested_types(*request.subject, request.common.types.all)) {
    Common common = request.common;
    common.types.all = type;
    std::string const shown = type.empty() ? "f32" : type;
    for (auto const& size : requested_sizes(*request.subject, request.size)) {
      Job job = made_job(*request.subject, size, common);
      if (job.task->notes.operations > request.max_operations)
        session.leave_out(*job.task, shown);
      else
        session.verify(std::move(job), shown, request.gaps,
                       data_of(request.small_integers, misalignment, hard), random);
    }
  }
}

}  // namespace

VerifyRequest VerifyRequest::copy() const {
  return {subject->clone(), size,           count,  small_integers, gaps, misalignment, data, suite,
          shapes,           max_operations, common, workload};
}

void verify_job(VerifyRequest const& request, WithVerifyOptions const& with_options) {
  check_options(request.common);
  check_files({}, inputs_of(request.common, {{"--shapes", request.shapes}}));
  long long const count = request.count == not_given ? 20 : request.count;
  if (count < 1 || count > 1'000'000)
    throw Error(ErrorCode::bad_request,
                "--count " + std::to_string(count) + " is out of range; expected 1 to 1000000");
  if (!(request.max_operations >= 0))
    throw Error(ErrorCode::bad_request, "--most-operations " + in_short(request.max_operations) +
                                            " is out of range; expected 0 or more");
  Index const misalignment = checked_misalignment(request);
  std::vector<std::vector<Index>> sizes;
  if (!request.workload) sizes = requested_sizes(*request.subject, request.size);
  nets::Random random(static_cast<unsigned long long>(request.common.seed), 1);
  bool const sizes_given =
      !sizes.empty() || request.workload || !request.suite.empty() || !request.shapes.empty();
  HardDraws hard(request, sizes_given ? "normal" : "mixed");
  if (request.small_integers && !request.data.empty())
    throw Error(ErrorCode::bad_request, "--integers and --data " + request.data + " are mutually exclusive");
  Session session(request);
  std::vector<Suite> suites = requested_suites(request.subject->name(), request.suite, request.shapes);
  if (request.workload) suites.push_back(*request.workload);
  bool const random_problems = sizes.empty() && suites.empty();
  if (!random_problems && request.count != not_given)
    throw Error(ErrorCode::bad_request,
                "--count " + std::to_string(count) +
                    " applies to random problems; remove the size, --suite and --shapes");
  if (random_problems && !request.size.images.empty())
    throw Error(ErrorCode::bad_request,
                "--images " + request.size.images + " requires --size, --suite or --shapes");
  for (Suite const& suite : suites)
    for (ProblemOptions const& problem : suite.problems) {
      VerifyRequest const one = with_options(request, problem);
      session.take(one);
      verify_suite_problem(session, one, checked_misalignment(one), hard, random);
    }
  for (std::string const& type : requested_types(*request.subject, request.common.types.all)) {
    Common common = request.common;
    common.types.all = type;
    std::string const shown = type.empty() ? "f32" : type;
    for (auto const& size : sizes)
      session.verify(made_job(*request.subject, size, common), shown, request.gaps,
                     data_of(request.small_integers, misalignment, hard), random);
    // Some kernels support few of the problems drawn.
    auto const enough = [count](long long verified, long long drawn) {
      return verified == count || drawn == (verified == 0 ? 200 : 50 * count + 200);
    };
    long long verified = 0;
    for (long long drawn = 0; random_problems && !enough(verified, drawn); ++drawn) {
      auto const subject = request.subject->clone();
      subject->draw_for(plan_options(*subject, common).kernel);
      auto const size = subject->draw(random);
      bool const integers = request.small_integers || draw_between(random, 0, 3) == 0;
      bool const gaps = request.gaps || draw_between(random, 0, 2) == 0;
      Index const offset =
          request.misalignment == not_given ? draw_from<Index>(random, {0, 0, 1, 2, 4, 8}) : misalignment;
      verified += session.verify_if_supported(made_job(*subject, size, common), shown, gaps,
                                              data_of(integers, offset, hard), random);
    }
  }
  session.finish();
}

}  // namespace cosmati::cli
