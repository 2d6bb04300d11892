// The body of `cosmati verify`.
#include "cli/verify_job.h"

#include "cli/record.h"
#include "cli/run_job.h"
#include "cli/table.h"
#include "cli/text.h"
#include "cli/verification.h"

namespace cosmati::cli {
namespace {

bool takes_promises(Backend backend) { return backend == Backend::cuda || backend == Backend::emulator; }

class Session {
 public:
  explicit Session(VerifyRequest const& request)
      : request_(request),
        device_(device_to_run_on(*request.subject, request.common)),
        options_(plan_options(*request.subject, request.common)) {}

  Backend backend() const { return device_.backend; }

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
    if (data.misalignment > 0) label += " misaligned by " + std::to_string(data.misalignment);
    if (request_.common.json)
      print_text(record(label, type, verdict).json());
    else
      table_.add({label, type, verdict.kernel, std::to_string(verdict.elements),
                  verdict.exact ? "exact" : in_short(verdict.error),
                  verdict.exact ? "-" : in_short(verdict.share_of_bound),
                  verdict.correct ? "right" : verdict.complaint});
    print_progress(std::to_string(problems_) + " verified");
  }

  void finish() const {
    if (!request_.common.json) table_.print();
    if (wrong_ > 0)
      throw Error(ErrorCode::wrong_result, std::to_string(wrong_) + " of " + std::to_string(problems_) +
                                               " problems gave a wrong result");
    if (!request_.common.json)
      print_line(std::to_string(problems_) + (problems_ == 1 ? " problem, right" : " problems, all right"));
  }

 private:
  Record record(std::string const& label, std::string const& type, Verdict const& verdict) const {
    Record line;
    line.add("verb", "verify")
        .add("subject", request_.subject->name())
        .add("problem", label)
        .add("type", type)
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
  Table table_{{"problem", "type", "kernel", "elements", "max error", "of bound", "verdict"}};
  long long problems_ = 0, wrong_ = 0;
};

}  // namespace

void verify_job(VerifyRequest const& request) {
  check_options(*request.subject, request.common);
  if (request.count < 1 || request.count > 1'000'000)
    throw Error(ErrorCode::bad_request,
                "--count " + std::to_string(request.count) + ": legal are 1 to 1000000");
  if (request.misalignment != not_given && (request.misalignment < 0 || request.misalignment > 63))
    throw Error(ErrorCode::bad_request,
                "--misalign " + std::to_string(request.misalignment) + ": legal are 0 to 63 bytes");
  Index const misalignment = request.misalignment == not_given ? 0 : request.misalignment;
  auto const sizes = requested_sizes(*request.subject, request.size);
  nets::Random random(static_cast<unsigned long long>(request.common.seed), 1);
  Session session(request);
  for (std::string const& type : requested_types(*request.subject, request.common.types.all)) {
    Common common = request.common;
    common.types.all = type;
    std::string const shown = type.empty() ? "f32" : type;
    for (auto const& size : sizes)
      session.verify(made_job(*request.subject, size, common), shown, request.gaps,
                     {request.small_integers, misalignment}, random);
    for (long long i = 0; sizes.empty() && i < request.count; ++i) {
      auto const subject = request.subject->clone();
      auto const size = subject->draw(random);
      bool const integers = request.small_integers || draw_between(random, 0, 3) == 0;
      bool const gaps = request.gaps || draw_between(random, 0, 2) == 0;
      // Host backends never see the difference.
      bool const drawn = request.misalignment == not_given && takes_promises(session.backend());
      Index const offset = drawn ? draw_from<Index>(random, {0, 0, 1, 2, 4, 8}) : misalignment;
      session.verify(made_job(*subject, size, common), shown, gaps, {integers, offset}, random);
    }
  }
  session.finish();
}

}  // namespace cosmati::cli
