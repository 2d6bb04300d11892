/* Gaussian units: distances, the loss, and both gradients, against loops and central differences. */
#include <math.h>

#include "tests/c_api/support.h"

enum {
  ROWS = 7,
  FEATURES = 12,
  CLASSES = 5,
  X = ROWS * FEATURES,
  C = CLASSES * FEATURES,
  D = ROWS * CLASSES
};

static float x[X], centres[C], distances[D], ddistances[D], dx[X], dcentres[C];
static float wanted_distances[D], wanted_dx[X], wanted_dcentres[C], wanted_loss[1];
static _Alignas(16) float loss[1];
static _Alignas(16) int32_t labels[ROWS];
static double const rubbish = 3;

static double distance_of(int row, int unit) {
  double sum = 0;
  for (int f = 0; f < FEATURES; ++f) {
    double const apart = (double)x[row * FEATURES + f] - (double)centres[unit * FEATURES + f];
    sum += apart * apart;
  }
  return sum;
}

static double normalizer(int row) {
  double sum = exp(-rubbish);
  for (int i = 0; i < CLASSES; ++i) sum += exp(-distance_of(row, i));
  return sum;
}

/* dx and dcentres from the gradient of the distances: weighted sums of 2 (x - center). */
static void want_gradients(double const* of_distances) {
  for (int i = 0; i < X; ++i) wanted_dx[i] = 0;
  for (int i = 0; i < C; ++i) wanted_dcentres[i] = 0;
  for (int row = 0; row < ROWS; ++row)
    for (int unit = 0; unit < CLASSES; ++unit)
      for (int f = 0; f < FEATURES; ++f) {
        int const at = row * FEATURES + f, of_centre = unit * FEATURES + f;
        double const part =
            2 * ((double)x[at] - (double)centres[of_centre]) * of_distances[row * CLASSES + unit];
        wanted_dx[at] += (float)part;
        wanted_dcentres[of_centre] -= (float)part;
      }
}

static cosmati_rbf units(void) {
  cosmati_rbf rbf = cosmati_default_rbf();
  rbf.x = cosmati_matrix(COSMATI_F32, ROWS, FEATURES, FEATURES, 1);
  rbf.centres = cosmati_matrix(COSMATI_F32, CLASSES, FEATURES, FEATURES, 1);
  return rbf;
}

static void test_distances(cosmati_handle_t handle) {
  cosmati_rbf rbf = units();
  cosmati_problem_t problem = NULL;
  double gradient[D];
  cosmati_argument const forward[] = {cosmati_data("x", x), cosmati_data("centres", centres),
                                      cosmati_data("distances", distances)};
  cosmati_argument const backward[] = {cosmati_data("x", x), cosmati_data("centres", centres),
                                       cosmati_data("ddistances", ddistances), cosmati_data("dx", dx),
                                       cosmati_data("dcentres", dcentres)};
  rbf.distances = cosmati_matrix(COSMATI_F32, ROWS, CLASSES, CLASSES, 1);
  OK(cosmati_rbf_problem(&rbf, &problem));
  RUN(handle, problem, forward);
  for (int i = 0; i < D; ++i) wanted_distances[i] = (float)distance_of(i / CLASSES, i % CLASSES);
  SAME(distances, wanted_distances, D, 1e-4);
  rbf.direction = COSMATI_BACKWARD;
  rbf.dcentres = rbf.centres;
  OK(cosmati_rbf_problem(&rbf, &problem));
  RUN(handle, problem, backward);
  for (int i = 0; i < D; ++i) gradient[i] = (double)ddistances[i];
  want_gradients(gradient);
  SAME(dx, wanted_dx, X, 1e-4);
  SAME(dcentres, wanted_dcentres, C, 1e-4);
}

static void test_loss(cosmati_handle_t handle) {
  cosmati_rbf rbf = units();
  cosmati_problem_t problem = NULL;
  double gradient[D], sum = 0;
  int64_t const rows = ROWS, one = 1;
  cosmati_argument const forward[] = {cosmati_data("x", x), cosmati_data("centres", centres),
                                      cosmati_data("labels", labels), cosmati_data("loss", loss)};
  cosmati_argument const backward[] = {cosmati_data("x", x), cosmati_data("centres", centres),
                                       cosmati_data("labels", labels), cosmati_data("dx", dx),
                                       cosmati_data("dcentres", dcentres)};
  for (int row = 0; row < ROWS; ++row) {
    labels[row] = row * 3 % CLASSES;
    sum += distance_of(row, labels[row]) + log(normalizer(row));
    for (int i = 0; i < CLASSES; ++i)
      gradient[row * CLASSES + i] = ((i == labels[row]) - exp(-distance_of(row, i)) / normalizer(row)) / ROWS;
  }
  wanted_loss[0] = (float)(sum / ROWS);
  rbf.labels = cosmati_packed(COSMATI_S32, 1, &rows);
  rbf.loss = cosmati_packed(COSMATI_F32, 1, &one);
  rbf.rubbish = rubbish;
  OK(cosmati_rbf_problem(&rbf, &problem));
  RUN(handle, problem, forward);
  SAME(loss, wanted_loss, 1, 1e-4);
  rbf.direction = COSMATI_BACKWARD;
  rbf.loss.rank = 0;
  rbf.dcentres = rbf.centres;
  OK(cosmati_rbf_problem(&rbf, &problem));
  RUN(handle, problem, backward);
  want_gradients(gradient);
  SAME(dx, wanted_dx, X, 1e-5);
  SAME(dcentres, wanted_dcentres, C, 1e-5);
}

void test_rbf(cosmati_handle_t handle) {
  cosmati_rbf rbf = units();
  cosmati_problem_t problem = NULL;
  fill_reals(x, X, 1);
  fill_reals(centres, C, 2);
  fill_reals(ddistances, D, 3);
  for (int i = 0; i < X; ++i) x[i] /= 4; /* close to the centers, so that exp(-distance) is not negligible */
  for (int i = 0; i < C; ++i) centres[i] /= 4;
  test_distances(handle);
  test_loss(handle);
  rbf.distances = cosmati_matrix(COSMATI_F32, ROWS, CLASSES + 1, CLASSES + 1, 1);
  REFUSED(cosmati_rbf_problem(&rbf, &problem), COSMATI_BAD_REQUEST, "distances");
}
