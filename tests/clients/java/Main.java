import org.openapitools.client.ApiClient;
import org.openapitools.client.api.LocalitiesApi;
import org.openapitools.client.api.ReconciliationApi;
import org.openapitools.client.model.ReconciliationBatch;
import org.openapitools.client.model.ReconciliationExtension;

/** Reads a service with the generated client, and prints what it found. */
public class Main {
  private static final String QUERIES = "{\"q0\": {\"query\": \"Aguascalientes\"}, \"otra\": {\"query\": \"Asientos\"}}";
  private static final String EXTEND = "{\"ids\": [\"010010001\"], \"properties\": [{\"id\": \"poblacion\"}]}";

  public static void main(String[] arguments) throws Exception {
    ApiClient client = new ApiClient();
    client.updateBaseUri(arguments[0]);
    ReconciliationApi reconciliation = new ReconciliationApi(client);
    ReconciliationBatch batch = reconciliation.reconcile(QUERIES, null).getReconciliationBatch();
    System.out.println(batch.getQ0().getResult().get(0).getId());
    System.out.println(batch.getAdditionalProperty("otra").getResult().get(0).getName());
    ReconciliationExtension extended = reconciliation.reconcile(null, EXTEND).getReconciliationExtension();
    System.out.println(extended.getRows().get("010010001").get("poblacion").get(0).get("int").getActualInstance());
    System.out.println(reconciliation.getReconciliation(null, null).getManifest().getBatchSize());
    System.out.println(new LocalitiesApi(client).getLocality(10010001, null, null, null, null).getNombre());
  }
}
